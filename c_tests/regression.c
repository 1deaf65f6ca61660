/*
 * The regression grid of docs/contract.md: 1,612 draws over the vocabulary of Colibri's Qwen3.6 path, each compared
 * with a full sort of this file's own, and 600 greedy fixtures against the strict-> scan.
 *
 *     regression [VOCAB_SIZE]
 *
 * The sampler's header is included by name, as Colibri does it, and is trusted to bring in the C library's: no other
 * #include here. A smaller vocabulary is for runs under valgrind.
 */
#include "qwen36_sample.h"

#ifdef __FAST_MATH__
#error "the comparison needs IEEE arithmetic: no fast-math"
#endif

enum {
    DEFAULT_VOCAB_SIZE = 248320,
    TAIL_SHAPES = 11,
    QUANTISED = TAIL_SHAPES,
    PLATEAU,
    SHAPES,
    DRAWS = 1612,
    GREEDY_FIXTURES = 600
};

static const float temperatures[] = {0.2f, 0.7f, 1.0f, 2.0f};
static const float top_ps[] = {0.3f, 0.9f, 0.99f, 1.0f};

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void *allocate(size_t count, size_t size)
{
    void *memory = malloc(count * size);
    if (memory == NULL) {
        fputs("regression: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Inputs come from a generator of our own (splitmix64): the host's rand() belongs to the draws. */
static uint64_t generator_state;

static uint64_t next_random(void)
{
    uint64_t z = generator_state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int random_below(int bound)
{
    return (int)(next_random() % (uint64_t)bound);
}

/* In (0, 1), both ends excluded, for the logarithms below. */
static double random_uniform(void)
{
    return ((double)(next_random() >> 12) + 0.5) / 4503599627370496.0;
}

/* ---- the logits ---- */

static const char *shape_name(int shape)
{
    return shape < TAIL_SHAPES ? "Gumbel tail" : shape == QUANTISED ? "quantised tail" : "plateau";
}

/* Spreads a few tokens over the vocabulary; 7,919 is prime, so they are distinct at the full size. */
static int scattered_id(int k, int vocab_size)
{
    return (int)(((int64_t)k * 7919 + 101) % vocab_size);
}

static void fill_logits(float *logits, int vocab_size, int shape)
{
    generator_state = (uint64_t)shape + 1;
    for (int id = 0; id < vocab_size; id++) {
        double gumbel = -2.0 * log(-log(random_uniform()));
        logits[id] = shape == QUANTISED ? (float)(floor(gumbel * 2.0) / 2.0) : (float)gumbel;
    }
    if (shape == PLATEAU) {
        for (int k = 0; k < 50; k++)
            logits[scattered_id(k, vocab_size)] = 30.0f;
        return;
    }
    for (int k = 0; k < 25; k++)
        logits[scattered_id(k, vocab_size)] += (float)((2 + shape) * 2.5 * (1.0 - k / 30.0));
}

/* ---- the full sort ---- */

/* A vocabulary in sampling order. */
struct ranking {
    int vocab_size;
    float *weights; /* by token id */
    int *ids;       /* heaviest first, equal weights by ascending id */
    int *spare;
    double total_weight;
};

static void ranking_allocate(struct ranking *ranking, int vocab_size)
{
    ranking->vocab_size = vocab_size;
    ranking->weights = allocate((size_t)vocab_size, sizeof *ranking->weights);
    ranking->ids = allocate((size_t)vocab_size, sizeof *ranking->ids);
    ranking->spare = allocate((size_t)vocab_size, sizeof *ranking->spare);
}

static void ranking_free(struct ranking *ranking)
{
    free(ranking->spare);
    free(ranking->ids);
    free(ranking->weights);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/*
 * Bottom-up merge sort from ascending ids. A token moves ahead only when it is strictly heavier, so equal weights
 * keep their ids ascending without a rule for ties: that is what makes it independent of a comparator.
 */
static void ranking_sort(struct ranking *ranking)
{
    const float *weights = ranking->weights;
    int size = ranking->vocab_size;

    for (int id = 0; id < size; id++)
        ranking->ids[id] = id;
    for (int width = 1; width < size; width *= 2) {
        int *from = ranking->ids;
        int *to = ranking->spare;
        for (int start = 0; start < size; start += 2 * width) {
            int left_end = smaller(start + width, size);
            int right_end = smaller(start + 2 * width, size);
            int left = start;
            int right = left_end;
            for (int k = start; k < right_end; k++) {
                int take_right = left == left_end || (right < right_end && weights[from[right]] > weights[from[left]]);
                to[k] = take_right ? from[right++] : from[left++];
            }
        }
        ranking->ids = to;
        ranking->spare = from;
    }
}

static void ranking_fill(struct ranking *ranking, const float *logits, float temperature)
{
    float top = logits[0];

    for (int id = 1; id < ranking->vocab_size; id++)
        top = logits[id] > top ? logits[id] : top;
    ranking->total_weight = 0.0;
    for (int id = 0; id < ranking->vocab_size; id++) {
        float distance = logits[id] - top;
        float scaled = distance / temperature;
        ranking->weights[id] = expf(scaled);
        ranking->total_weight += (double)ranking->weights[id];
    }
    ranking_sort(ranking);
}

/* The token for one raw rand() value: the first in order whose cumulative mass reaches the target. */
static int ranking_pick(const struct ranking *ranking, float top_p, int raw_rand)
{
    double wanted = top_p < 1.0f ? (double)top_p * ranking->total_weight : ranking->total_weight;
    double kept = 0.0;
    double target;
    double mass = 0.0;
    int position = 0;

    for (int k = 0; k < ranking->vocab_size && kept < wanted; k++)
        kept += (double)ranking->weights[ranking->ids[k]];
    target = (double)raw_rand / (double)RAND_MAX * kept;
    while ((mass += (double)ranking->weights[ranking->ids[position]]) < target)
        position++;
    return ranking->ids[position];
}

/* ---- the draws ---- */

struct setting {
    int shape;
    float temperature;
    float top_p;
};

static int draws_that_agree;

static void print_token(const struct ranking *ranking, const float *logits, const char *who, int id)
{
    fprintf(stderr, "  %s token %d", who, id);
    if (id >= 0 && id < ranking->vocab_size)
        fprintf(stderr, ", logit %a (0x%08lx), weight %a (0x%08lx)", (double)logits[id],
                (unsigned long)bits_of(logits[id]), (double)ranking->weights[id],
                (unsigned long)bits_of(ranking->weights[id]));
    fputc('\n', stderr);
}

/*
 * Draws `count` times after one srand(seed) and compares every token. Afterwards the generator must stand where
 * `count` calls of rand() leave it.
 */
static void check_draws(const struct ranking *ranking, const float *logits, struct setting setting, unsigned seed,
                        int count)
{
    int raw[4];
    int next;

    srand(seed);
    for (int draw = 0; draw < count; draw++)
        raw[draw] = rand();
    next = rand();

    srand(seed);
    for (int draw = 0; draw < count; draw++) {
        int expected = ranking_pick(ranking, setting.top_p, raw[draw]);
        int actual = serve_sample(logits, ranking->vocab_size, setting.temperature, setting.top_p);
        if (actual != expected) {
            fprintf(stderr,
                    "regression: %d of %d draws agree, then one differs\n"
                    "  shape %d (%s), V %d, temperature %a, top_p %a, srand(%u), draw %d of %d, rand() = %d\n",
                    draws_that_agree, DRAWS, setting.shape, shape_name(setting.shape), ranking->vocab_size,
                    (double)setting.temperature, (double)setting.top_p, seed, draw + 1, count, raw[draw]);
            print_token(ranking, logits, "full sort:", expected);
            print_token(ranking, logits, "library:  ", actual);
            exit(1);
        }
        draws_that_agree++;
    }
    if (rand() != next) {
        fprintf(stderr, "regression: %d draws after srand(%u) did not call rand() %d times\n", count, seed, count);
        exit(1);
    }
}

/* The first seed from `from` on whose first rand() lies in the given sixth of the range. */
static unsigned seed_in_sixth(int sixth, unsigned from)
{
    for (unsigned seed = from;; seed++) {
        srand(seed);
        if ((int)((double)rand() / ((double)RAND_MAX + 1.0) * 6.0) == sixth)
            return seed;
    }
}

static void check_setting(const struct ranking *ranking, const float *logits, struct setting setting)
{
    /* Every setting has its own seeds; srand(0) is srand(1) in glibc, so they start at 1. */
    static unsigned first_seed = 1;

    if (setting.top_p >= 1.0f) {
        check_draws(ranking, logits, setting, first_seed++, 1);
        return;
    }
    for (int sixth = 0; sixth < 6; sixth++)
        check_draws(ranking, logits, setting, seed_in_sixth(sixth, first_seed), 1);
    check_draws(ranking, logits, setting, first_seed, 4);
    first_seed += 1000;
}

static void check_all_draws(int vocab_size)
{
    float *logits = allocate((size_t)vocab_size, sizeof *logits);
    struct ranking ranking;

    ranking_allocate(&ranking, vocab_size);
    for (int shape = 0; shape < SHAPES; shape++) {
        fill_logits(logits, vocab_size, shape);
        for (int t = 0; t < LENGTH(temperatures); t++) {
            ranking_fill(&ranking, logits, temperatures[t]);
            for (int p = 0; p < LENGTH(top_ps); p++) {
                struct setting setting = {shape, temperatures[t], top_ps[p]};
                check_setting(&ranking, logits, setting);
            }
        }
    }
    ranking_free(&ranking);
    free(logits);
}

/* ---- greedy ---- */

static int first_maximum(const float *values, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

/* Six kinds of vector in turn: plain, ties, signed zeros, scattered NaNs, nothing but special values, masks. */
static float greedy_value(int fixture)
{
    static const float zeros[] = {0.0f, -0.0f, -1.0f};
    static const float specials[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f};

    switch (fixture % 6) {
    case 0: return (float)(random_uniform() * 40.0 - 20.0);
    case 1: return (float)random_below(4);
    case 2: return zeros[random_below(LENGTH(zeros))];
    case 3: return random_below(4) == 0 ? specials[random_below(2)] : (float)random_below(50);
    case 4: return specials[random_below(LENGTH(specials))];
    default: return random_below(3) == 0 ? -INFINITY : (float)-random_below(90);
    }
}

/* Short vectors around every lane width first, then longer ones. */
static int greedy_length(int fixture)
{
    return fixture < 400 ? 1 + fixture % 70 : 1 + random_below(5000);
}

static void check_greedy(int fixture)
{
    static const float never_used[] = {0.9f, 1.0f, 0.0f, NAN};
    int offset = fixture % 16; /* a vector may start at any float, and must not be read beyond its end */
    int count, expected, scanned, sampled, next;
    float *block, *values;

    generator_state = 0x67726565647900u + (uint64_t)fixture;
    count = greedy_length(fixture);
    block = allocate((size_t)(offset + count), sizeof *block);
    values = block + offset;
    for (int i = 0; i < offset; i++)
        block[i] = INFINITY; /* would win, if it were looked at */
    for (int i = 0; i < count; i++)
        values[i] = greedy_value(fixture);

    expected = first_maximum(values, count);
    scanned = argmax_first(values, count);
    srand((unsigned)fixture + 1);
    next = rand();
    srand((unsigned)fixture + 1);
    sampled = serve_sample(values, count, fixture % 2 ? 0.0f : -1.0f, never_used[fixture % LENGTH(never_used)]);
    if (scanned != expected || sampled != expected) {
        fprintf(stderr,
                "regression: %d of %d greedy fixtures agree, then one differs\n"
                "  fixture %d, length %d, offset %d: strict-> scan %d (%a, 0x%08lx), argmax_first %d, serve_sample %d\n",
                fixture, GREEDY_FIXTURES, fixture, count, offset, expected, (double)values[expected],
                (unsigned long)bits_of(values[expected]), scanned, sampled);
        exit(1);
    }
    if (rand() != next) {
        fprintf(stderr, "regression: greedy fixture %d called rand()\n", fixture);
        exit(1);
    }
    free(block);
}

static int parse_vocab_size(const char *text)
{
    char *end;
    long size = strtol(text, &end, 10);

    if (end == text || *end != '\0' || size < 1 || size > 100000000) {
        fprintf(stderr, "regression: VOCAB_SIZE must be a number from 1 to 100000000, not '%s'\n", text);
        exit(2);
    }
    return (int)size;
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        fputs("usage: regression [VOCAB_SIZE]\n", stderr);
        return 2;
    }
    check_all_draws(argc == 2 ? parse_vocab_size(argv[1]) : DEFAULT_VOCAB_SIZE);
    for (int fixture = 0; fixture < GREEDY_FIXTURES; fixture++)
        check_greedy(fixture);
    printf("%d of %d draws, %d of %d greedy fixtures agree\n", draws_that_agree, DRAWS, GREEDY_FIXTURES,
           GREEDY_FIXTURES);
    return draws_that_agree == DRAWS ? 0 : 1;
}
