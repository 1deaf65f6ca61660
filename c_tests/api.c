/*
 * The request API as a C program meets it: every status, a batch against single calls, a generator saved as bytes, no
 * allocation in a workspace, and serve_sample's token without filters.
 */
#include "colibri_sampler.h"
#include "qwen36_sample.h"

#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 37, VOCAB = 1500, STRIDE = 1511 };

static long checks;

static void check(int holds, const char *what, int line)
{
    checks++;
    if (!holds) {
        printf("line %d: %s\n", line, what);
        exit(1);
    }
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static float logits[ROWS * STRIDE];
static colibri_params params[ROWS];
static double uniforms[ROWS];

/* Logits from a generator: a few above a broad tail. */
static void fill(void)
{
    colibri_rng rng;

    CHECK(colibri_rng_seed(&rng, 20, 36) == COLIBRI_STATUS_OK);
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < STRIDE; i++)
            logits[row * STRIDE + i] = (float)(8.0 * colibri_rng_uniform(&rng) - 4.0);
        for (int i = 0; i < 20; i++)
            logits[row * STRIDE + (row * 79 + i * 53) % VOCAB] += (float)(i / 4);
        params[row] = colibri_params_default();
        params[row].temperature = 0.25f * (float)(row % 5);
        params[row].top_p = row % 3 == 0 ? 1.0f : 0.9f;
        params[row].top_k = row % 4 == 1 ? 20 : 0;
        params[row].min_p = row % 7 == 2 ? 0.05f : 0.0f;
        uniforms[row] = colibri_rng_uniform(&rng);
    }
    logits[3 * STRIDE + 7] = NAN;
    logits[5 * STRIDE + VOCAB - 1] = INFINITY;
    for (int i = 0; i < VOCAB; i++)
        logits[6 * STRIDE + i] = -INFINITY;
    params[8].top_k = -1;
    params[9].min_p = 1.5f;
    params[10].temperature = -0.5f;
    uniforms[11] = NAN;
}

static const colibri_status bad_rows[ROWS] = {
    [3] = COLIBRI_STATUS_BAD_LOGIT,        [5] = COLIBRI_STATUS_BAD_LOGIT,  [6] = COLIBRI_STATUS_ALL_MASKED,
    [8] = COLIBRI_STATUS_BAD_TOP_K,        [9] = COLIBRI_STATUS_BAD_MIN_P,  [10] = COLIBRI_STATUS_BAD_TEMPERATURE,
    [11] = COLIBRI_STATUS_BAD_UNIFORM,
};

static int32_t single_tokens[ROWS];
static colibri_info single_infos[ROWS];

static void singly(void)
{
    for (int row = 0; row < ROWS; row++) {
        colibri_error error = {COLIBRI_STATUS_OK, 77, 77};
        colibri_status status = colibri_sample(logits + row * STRIDE, VOCAB, &params[row], uniforms[row], NULL,
                                               &single_tokens[row], &single_infos[row], &error);

        CHECK(status == bad_rows[row]);
        CHECK(error.status == status);
        if (status == COLIBRI_STATUS_OK)
            CHECK(error.row == 77 && error.index == 77);
        else
            CHECK(error.row == 0 && error.index == (row == 3 ? 7u : row == 5 ? VOCAB - 1u : 0u));
    }
}

static colibri_info infos[ROWS];
static colibri_error errors[ROWS];
static int32_t tokens[ROWS];

static colibri_batch batch_of(uint32_t threads)
{
    colibri_batch batch = {
        .logits = logits, .rows = ROWS, .vocab_size = VOCAB, .stride = STRIDE, .params = params,
        .uniforms = uniforms, .tokens = tokens, .infos = infos, .errors = errors, .threads = threads,
    };

    for (int row = 0; row < ROWS; row++)
        tokens[row] = -77;
    memset(errors, 0xff, sizeof errors);
    return batch;
}

static int batch_is_right(uint32_t threads, const colibri_workspace *workspace)
{
    colibri_batch batch = batch_of(threads);

    if (colibri_sample_batch(&batch, workspace) != COLIBRI_STATUS_BAD_ROWS)
        return 0;
    for (int row = 0; row < ROWS; row++) {
        if (errors[row].status != bad_rows[row] || errors[row].row != (size_t)row)
            return 0;
        if (bad_rows[row] != COLIBRI_STATUS_OK ? tokens[row] != -77
            : tokens[row] != single_tokens[row] || infos[row].logprob != single_infos[row].logprob ||
              infos[row].kept != single_infos[row].kept || infos[row].nucleus != single_infos[row].nucleus)
            return 0;
    }
    return errors[3].index == 7 && errors[5].index == VOCAB - 1;
}

static void batches(void)
{
    static unsigned char memory[4 * 40000];
    colibri_workspace workspace = {memory, 4 * colibri_workspace_size(VOCAB)};
    colibri_batch batch;
    pid_t child;
    int status;

    CHECK(workspace.size <= sizeof memory);
    for (uint32_t threads = 0; threads <= 4; threads++) {
        CHECK(batch_is_right(threads, NULL));
        CHECK(batch_is_right(threads, &workspace));
    }
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(batch_is_right(4, NULL) ? 40 : 41);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 40);

    batch = batch_of(5);
    CHECK(colibri_sample_batch(&batch, &workspace) == COLIBRI_STATUS_WORKSPACE_TOO_SMALL);
    batch.stride = VOCAB - 1;
    CHECK(colibri_sample_batch(&batch, NULL) == COLIBRI_STATUS_BAD_STRIDE);
    batch.vocab_size = 0;
    CHECK(colibri_sample_batch(&batch, NULL) == COLIBRI_STATUS_EMPTY);
    batch.vocab_size = (size_t)INT32_MAX + 1;
    CHECK(colibri_sample_batch(&batch, NULL) == COLIBRI_STATUS_TOO_LONG);
    batch.tokens = NULL;
    CHECK(colibri_sample_batch(&batch, NULL) == COLIBRI_STATUS_NULL);
    CHECK(colibri_sample_batch(NULL, NULL) == COLIBRI_STATUS_NULL);
    batch.rows = 0;
    CHECK(colibri_sample_batch(&batch, NULL) == COLIBRI_STATUS_OK);
}

/* A generator written to a file in the middle of a stream goes on where it was. */
static void saved_generator(void)
{
    static const double first = 0x0.86b1da1d72062p0; /* the upper 53 bits of 0x86b1da1d72062b68, less the last */
    colibri_rng rng, restored;
    FILE *file = tmpfile();
    double ahead[50];

    CHECK(file != NULL);
    colibri_rng_seed(&rng, 42, 54);
    CHECK(colibri_rng_uniform(&rng) - first < 0x1p-52);
    for (int i = 0; i < 10; i++)
        colibri_rng_uniform(&rng);
    CHECK(fwrite(&rng, sizeof rng, 1, file) == 1);
    for (int i = 0; i < 50; i++)
        ahead[i] = colibri_rng_uniform(&rng);
    rewind(file);
    CHECK(fread(&restored, sizeof restored, 1, file) == 1);
    fclose(file);
    for (int i = 0; i < 50; i++)
        CHECK(colibri_rng_uniform(&restored) == ahead[i] && ahead[i] >= 0 && ahead[i] < 1);
    CHECK(colibri_rng_seed(NULL, 1, 1) == COLIBRI_STATUS_NULL);
    CHECK(isnan(colibri_rng_uniform(NULL)));
}

/* What serve_sample draws with srand(seed), colibri_sample draws with the same number. */
static void as_serve_sample(void)
{
    const float *row = logits;

    for (unsigned seed = 0; seed < 2000; seed++) {
        colibri_params plain = colibri_params_default();
        double uniform;
        int32_t token;

        plain.temperature = 0.1f + 0.01f * (float)(seed % 200);
        plain.top_p = (float)(seed % 12) / 10.0f;
        srand(seed);
        uniform = (double)rand() / RAND_MAX;
        CHECK(colibri_sample(row, VOCAB, &plain, uniform, NULL, &token, NULL, NULL) == COLIBRI_STATUS_OK);
        srand(seed);
        CHECK(token == serve_sample(row, VOCAB, plain.temperature, plain.top_p));
    }
}

static void best(void)
{
    int32_t ids[5] = {-1, -1, -1, -1, -1};
    double logprobs[5], total = 0;
    int32_t token;
    colibri_params greedy = colibri_params_default();

    greedy.temperature = 0;
    CHECK(colibri_top_logprobs(logits, VOCAB, 0.8f, 5, NULL, ids, logprobs, NULL) == COLIBRI_STATUS_OK);
    for (int i = 0; i < VOCAB; i++)
        total += exp((logits[i] - (double)logits[ids[0]]) / 0.8f);
    for (int i = 0; i < 5; i++) {
        double wanted = (logits[ids[i]] - (double)logits[ids[0]]) / 0.8f - log(total);
        CHECK(fabs(logprobs[i] - wanted) < 1e-6);
        CHECK(i == 0 || logprobs[i] <= logprobs[i - 1]);
    }
    CHECK(colibri_sample(logits, VOCAB, &greedy, 0, NULL, &token, NULL, NULL) == COLIBRI_STATUS_OK);
    CHECK(token == ids[0]);
    CHECK(colibri_top_logprobs(logits, VOCAB, 0.0f, 5, NULL, ids, logprobs, NULL) == COLIBRI_STATUS_BAD_TEMPERATURE);
    CHECK(colibri_top_logprobs(logits, VOCAB, 1.0f, 0, NULL, ids, logprobs, NULL) == COLIBRI_STATUS_BAD_TOP_K);
    CHECK(colibri_top_logprobs(logits, 4, 1.0f, 5, NULL, ids, logprobs, NULL) == COLIBRI_STATUS_BAD_TOP_K);
    CHECK(colibri_top_logprobs(logits, VOCAB, 1.0f, 5, NULL, NULL, logprobs, NULL) == COLIBRI_STATUS_NULL);
}

/* Pointers, lengths and small workspaces. */
static void arguments(void)
{
    colibri_params plain = colibri_params_default();
    unsigned char memory[2000];
    colibri_workspace workspace = {memory, colibri_workspace_size(4)};
    int32_t token = -77;

    CHECK(plain.temperature == 1 && plain.top_p == 1 && plain.top_k == 0 && plain.min_p == 0);
    CHECK(workspace.size > 0 && workspace.size <= sizeof memory);
    CHECK(colibri_sample(NULL, 4, &plain, 0, NULL, &token, NULL, NULL) == COLIBRI_STATUS_NULL);
    CHECK(colibri_sample(logits, 4, NULL, 0, NULL, &token, NULL, NULL) == COLIBRI_STATUS_NULL);
    CHECK(colibri_sample(logits, 4, &plain, 0, NULL, NULL, NULL, NULL) == COLIBRI_STATUS_NULL);
    CHECK(colibri_sample(logits, 0, &plain, 0, NULL, &token, NULL, NULL) == COLIBRI_STATUS_EMPTY);
    CHECK(colibri_sample(logits, (size_t)INT32_MAX + 1, &plain, 0, NULL, &token, NULL, NULL) ==
          COLIBRI_STATUS_TOO_LONG);
    CHECK(colibri_sample(logits, SIZE_MAX, &plain, 0, NULL, &token, NULL, NULL) == COLIBRI_STATUS_TOO_LONG);
    workspace.size--;
    CHECK(colibri_sample(logits, 4, &plain, 0, &workspace, &token, NULL, NULL) == COLIBRI_STATUS_WORKSPACE_TOO_SMALL);
    CHECK(token == -77);
    workspace.size++;
    CHECK(colibri_sample(logits, 4, &plain, 0, &workspace, &token, NULL, NULL) == COLIBRI_STATUS_OK);
    CHECK(token >= 0 && token < 4);
    CHECK(strcmp(colibri_sampler_version(), COLIBRI_SAMPLER_VERSION) == 0);
    for (int status = -1; status <= COLIBRI_STATUS_BAD_ROWS + 1; status++)
        CHECK(colibri_strerror(status) != NULL && colibri_strerror(status)[0] != '\0');
}

int main(void)
{
    fill();
    arguments();
    singly();
    batches();
    saved_generator();
    as_serve_sample();
    best();
    printf("%ld checks of the request API\n", checks);
    return 0;
}
