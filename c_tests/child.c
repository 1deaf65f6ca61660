/* child.h says what for. */
#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int run_child(int (*body)(const void *context), const void *context, char *text, size_t size)
{
    int ends[2];
    int status;
    size_t length = 0;
    ssize_t got;
    pid_t child;

    fflush(NULL);
    if (pipe(ends) != 0 || (child = fork()) < 0) {
        perror("run_child");
        exit(2);
    }
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(body(context));
    }
    close(ends[1]);
    while (length < size - 1 && (got = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    if (waitpid(child, &status, 0) != child) {
        perror("run_child");
        exit(2);
    }
    return status;
}
