/* A call in a process of its own, for the programs that look at how a call ends. */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>

/*
 * Runs body(context) in a child, whose exit status its result becomes. What the child writes to stderr goes to text,
 * and its wait status is returned. The program ends with status 2 where there can be no child.
 */
int run_child(int (*body)(const void *context), const void *context, char *text, size_t size);

#endif /* CHILD_H */
