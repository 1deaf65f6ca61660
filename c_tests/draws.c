/* Draws in surroundings of a program's own; draws.h says what for. */
#include "draws.h"

#include "reference.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

const struct sampler linked = {serve_sample, serve_sample_sorted, argmax_first, colibri_sample_batch};

/* ---- numbers (splitmix64) ---- */

static uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct stream {
    unsigned number;
    uint64_t state;
};

static _Thread_local struct stream stream;

_Thread_local void (*on_rand)(void);

void stream_start(unsigned number)
{
    stream.number = number;
    stream.state = (uint64_t)number << 32;
}

/* The program's rand(), which the library calls too. */
int rand(void)
{
    if (on_rand != NULL)
        on_rand();
    return (int)(next_number(&stream.state) % ((uint64_t)RAND_MAX + 1));
}

/* ---- logits ---- */

enum shape { GUMBEL_TAIL, STEPS, PLATEAU, HALF_MASKED, SUBNORMALS, TELLTALE, NOT_FINITE, SHAPES };

static const char *const shape_names[] = {
    "Gumbel tail", "steps of 0.5", "plateau", "half masked", "subnormals", "telltale", "not finite",
};

/* Below and above 512, up to which the library takes another path, and the sizes of real vocabularies. */
static const int sizes[] = {1, 2, 17, 512, 513, 700, 3000, 32000, 248320};

/* Beyond this size no NaN weights: only a full sort of qsort's answers those. */
enum { LARGEST_NOT_FINITE = 3000 };

static const struct parameters {
    float temperature;
    float top_p;
} parameters[] = {{0.7f, 0.9f}, {1.0f, 1.0f}, {1.3f, 0.3f}, {2.0f, 0.99f}, {0.0f, 0.9f}, {1e-40f, 0.5f}};

struct vector {
    enum shape shape;
    int vocab_size;
    struct parameters parameters;
    const float *logits;
    struct reference_prepared *prepared; /* NULL: not yet */
};

static struct vector vectors[LENGTH(sizes) * SHAPES];
static int vector_count;

/* A size's vectors are rows of one block, some floats apart, which a batch can draw from. */
enum { GAP = 7 };

static void *allocate(size_t count, size_t size)
{
    void *memory = malloc(count * size);

    if (memory == NULL) {
        fputs("draws: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* The argument of expf at which the fused and the separate one differ: docs/exactness.md. */
static float telling_argument(void)
{
    static const uint32_t bits = 0xc27c65d9;
    float argument;

    memcpy(&argument, &bits, sizeof bits);
    return argument;
}

const char *kind_of_expf(void)
{
    volatile float argument = telling_argument();
    float weight = expf(argument);
    uint32_t bits;

    memcpy(&bits, &weight, sizeof bits);
    return bits == 0x11fa2993 ? "fused" : bits == 0x11fa2992 ? "separate" : "another";
}

/*
 * At temperature 1 and top_p 0.5. The last place of one weight, 2^-115, decides whether the sum of the first five is
 * 3/2^53 or less, that whether the total is 2 + 2^-51 or 2, that whether the cutoff is above 1, and that whether one or
 * two tokens of weight 1 are kept. Made so: the first three and the fourth add up to a tie, the fifth to another.
 */
static void fill_telltale(float *logits, int size)
{
    static const uint32_t bits[] = {0xc22be648, 0xc25ecc08, 0xc28860f0, 0xc27c65d9, 0xc20e8e2c, 0, 0};

    for (int id = 0; id < size; id++)
        logits[id] = -INFINITY;
    memcpy(logits, bits, sizeof bits[0] * (size_t)(size < LENGTH(bits) ? size : LENGTH(bits)));
}

/* One that a program which flushes subnormals can make too. */
static float subnormal(int factor)
{
    uint32_t bits = 70000u * (uint32_t)factor; /* some 1e-40 each */
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill(float *logits, int size, enum shape shape)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    uint64_t state = (uint64_t)size * SHAPES + shape;

    if (shape == TELLTALE) {
        fill_telltale(logits, size);
        return;
    }
    for (int id = 0; id < size; id++) {
        double uniform = ((double)(next_number(&state) >> 12) + 0.5) / 4503599627370496.0;
        double gumbel = -2.0 * log(-log(uniform));

        switch (shape) {
        case STEPS: logits[id] = (float)(floor(gumbel * 2.0) / 2.0); break;
        case PLATEAU: logits[id] = id % 61 == 7 ? 30.0f : (float)gumbel; break;
        case HALF_MASKED: logits[id] = id % 2 ? -INFINITY : (float)gumbel; break;
        case SUBNORMALS: logits[id] = id % 97 == 1 ? subnormal(id % 5) : (float)(-70 - 40 * uniform); break;
        case NOT_FINITE: logits[id] = id % 5 == 3 ? specials[id % 3] : (float)gumbel; break;
        default: logits[id] = (float)gumbel; break;
        }
    }
}

void draws_make(int largest_vocab)
{
    for (int s = 0; s < LENGTH(sizes) && sizes[s] <= largest_vocab; s++) {
        int size = sizes[s];
        int shapes = size <= LARGEST_NOT_FINITE ? SHAPES : NOT_FINITE;
        float *block = allocate((size_t)(size + GAP) * SHAPES, sizeof *block);

        for (int shape = 0; shape < shapes; shape++) {
            struct vector *vector = &vectors[vector_count++];
            float *row = block + (size_t)shape * (size_t)(size + GAP);

            fill(row, size, shape);
            vector->shape = shape;
            vector->vocab_size = size;
            vector->logits = row;
            /* There is one shape more than there are parameters, so each meets another at the next size. */
            vector->parameters = parameters[vector_count % LENGTH(parameters)];
            if (shape == TELLTALE)
                vector->parameters = (struct parameters){1.0f, 0.5f};
        }
    }
}

void draws_prepare(void)
{
    for (int v = 0; v < vector_count; v++) {
        struct vector *vector = &vectors[v];

        reference_release(vector->prepared);
        vector->prepared = reference_prepare(vector->logits, vector->vocab_size, vector->parameters.temperature,
                                             vector->parameters.top_p);
    }
}

/* ---- one draw ---- */

enum function { SERVE_SAMPLE, SERVE_SAMPLE_SORTED, ARGMAX_FIRST, FUNCTIONS };

struct draw {
    const struct vector *vector;
    enum function function;
};

static struct draw draw_of(unsigned stream_number, int number)
{
    uint64_t state = (uint64_t)stream_number << 32 | (uint32_t)number;
    struct draw draw = {&vectors[next_number(&state) % (uint64_t)vector_count], SERVE_SAMPLE};

    /* More of the first, as programs have it. */
    if (next_number(&state) % 2 == 0)
        draw.function = next_number(&state) % FUNCTIONS;
    /* All weights would be NaN. */
    if (draw.vector->parameters.temperature == 0.0f && draw.vector->vocab_size > LARGEST_NOT_FINITE)
        draw.function = SERVE_SAMPLE;
    return draw;
}

/* The reference's token; its call of rand(), if it makes one, is made. */
static int expected_token(const struct draw *draw)
{
    const struct vector *vector = draw->vector;
    struct parameters with = vector->parameters;

    if (draw->function == ARGMAX_FIRST || (draw->function == SERVE_SAMPLE && with.temperature <= 0.0f))
        return reference_argmax_first(vector->logits, vector->vocab_size);
    if (vector->prepared != NULL)
        return reference_pick(vector->prepared, rand());
    if (draw->function == SERVE_SAMPLE)
        return reference_serve_sample(vector->logits, vector->vocab_size, with.temperature, with.top_p);
    return reference_serve_sample_sorted(vector->logits, vector->vocab_size, with.temperature, with.top_p);
}

static int drawn_token(const struct sampler *sampler, const struct draw *draw)
{
    const struct vector *vector = draw->vector;
    struct parameters with = vector->parameters;

    switch (draw->function) {
    case SERVE_SAMPLE: return sampler->serve_sample(vector->logits, vector->vocab_size, with.temperature, with.top_p);
    case SERVE_SAMPLE_SORTED:
        return sampler->serve_sample_sorted(vector->logits, vector->vocab_size, with.temperature, with.top_p);
    default: return sampler->argmax_first(vector->logits, vector->vocab_size);
    }
}

static void describe(const char *function, const struct vector *vector, unsigned stream_number, int number)
{
    fprintf(stderr, "draws: %s from the %s of %d logits, temperature %g, top_p %g, draw %d of stream %u: ", function,
            shape_names[vector->shape], vector->vocab_size, (double)vector->parameters.temperature,
            (double)vector->parameters.top_p, number, stream_number);
}

int draws_agree(const struct sampler *sampler, int first, int count)
{
    static const char *const functions[] = {"serve_sample", "serve_sample_sorted", "argmax_first"};

    for (int number = first; number < first + count; number++) {
        struct draw draw = draw_of(stream.number, number);
        struct stream before = stream, after;
        int expected = expected_token(&draw);
        int actual;

        after = stream;
        stream = before;
        actual = drawn_token(sampler, &draw);
        if (actual != expected || stream.state != after.state) {
            flockfile(stderr); /* other threads may have something to say */
            describe(functions[draw.function], draw.vector, stream.number, number);
            if (actual != expected)
                fprintf(stderr, "token %d, the reference's is %d\n", actual, expected);
            else
                fputs("rand() was not called as often as by the reference\n", stderr);
            funlockfile(stderr);
            return 0;
        }
    }
    return 1;
}

void reference_draws(int first, int count, int *tokens)
{
    for (int number = first; number < first + count; number++) {
        struct draw draw = draw_of(stream.number, number);

        tokens[number - first] = expected_token(&draw);
    }
}

/* ---- a batch ---- */

int batch_agrees(const struct sampler *sampler, int number, int threads)
{
    enum { ROWS = NOT_FINITE }; /* what is not finite is refused in a batch */
    colibri_params params[ROWS];
    double uniforms[ROWS];
    int32_t tokens[ROWS], expected[ROWS];
    colibri_error errors[ROWS];
    const struct vector *rows = vectors;
    int size = draw_of(stream.number, number).vector->vocab_size;
    colibri_status status;

    while (rows->vocab_size != size)
        rows++;
    for (int row = 0; row < ROWS; row++) {
        struct draw draw = {&rows[row], SERVE_SAMPLE};
        struct stream before = stream;

        expected[row] = expected_token(&draw);
        stream = before;
        uniforms[row] = (double)rand() / RAND_MAX;
        params[row] = (colibri_params){rows[row].parameters.temperature, rows[row].parameters.top_p, 0, 0.0f};
        tokens[row] = -1;
    }
    status = sampler->colibri_sample_batch(
        &(colibri_batch){.logits = rows->logits, .rows = ROWS, .vocab_size = (size_t)size,
                         .stride = (size_t)(size + GAP), .params = params, .uniforms = uniforms, .tokens = tokens,
                         .errors = errors, .threads = (uint32_t)threads},
        NULL);
    for (int row = 0; row < ROWS; row++) {
        if (status == COLIBRI_STATUS_OK && tokens[row] == expected[row])
            continue;
        flockfile(stderr);
        describe("colibri_sample_batch", &rows[row], stream.number, number);
        fprintf(stderr, "status %d, token %d, the reference's is %d\n", (int)status, (int)tokens[row],
                (int)expected[row]);
        funlockfile(stderr);
        return 0;
    }
    return 1;
}
