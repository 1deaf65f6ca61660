/* Several requests served by turns. */
#ifndef MULTIPLEX_H
#define MULTIPLEX_H

/* Prints the tokens that were served and returns how many. */
long serve_multiplexed(int V, int rounds);

#endif
