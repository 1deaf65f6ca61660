//! The re-entrant request API: the functions of `colibri_sampler.h`. None of
//! them ends the process, and outputs are written on success only.

use std::ffi::{c_char, c_float, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;

use crate::request::{DrawRequest, Params, Rejection};
use crate::rng::Rng;
use crate::sample::Way;
use crate::sampler::{self, Info};
use crate::threads;
use crate::workspace;

/// What a call came to. Values keep their meaning; later versions may add some.
///
/// cbindgen:rename-all=QualifiedScreamingSnakeCase
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// All outputs are written.
    Ok = 0,
    /// A pointer that is needed is NULL.
    Null = 1,
    /// There are no logits.
    Empty = 2,
    /// There are more logits than a 32-bit id can tell apart.
    TooLong = 3,
    /// A draw is NaN or outside [0, 1].
    BadUniform = 4,
    /// A temperature is NaN, negative or infinite; for log-probabilities also 0.
    BadTemperature = 5,
    /// A top_k is negative, or a k is 0 or above the number of logits.
    BadTopK = 6,
    /// A min_p is NaN or outside [0, 1].
    BadMinP = 7,
    /// A logit is NaN or +inf.
    BadLogit = 8,
    /// Every logit is -inf.
    AllMasked = 9,
    /// A stride is less than a row, or rows do not fit into an address space.
    BadStride = 10,
    /// A workspace has fewer bytes than colibri_workspace_size says.
    WorkspaceTooSmall = 11,
    /// An allocation failed.
    NoMemory = 12,
    /// Some rows of a batch failed; each row's error says why.
    BadRows = 13,
}

/// Why a row has no token. Beside the status of a call it names the place.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub status: Status,
    /// The row of a batch; 0 for a single call.
    pub row: usize,
    /// The first logit that is NaN or +inf, for that status; 0 for others.
    pub index: usize,
}

/// Memory of the caller's, in which a call allocates nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Its first byte, at any alignment.
    pub memory: *mut c_void,
    /// Its bytes.
    pub size: usize,
}

/// Rows of logits to draw a token from each, and where the results go. Row r
/// has the logits logits[r * stride] to logits[r * stride + vocab_size - 1].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The first row's first logit.
    pub logits: *const c_float,
    /// How many rows there are.
    pub rows: usize,
    /// Logits in a row.
    pub vocab_size: usize,
    /// Floats from the beginning of a row to that of the next: vocab_size or
    /// more.
    pub stride: usize,
    /// Parameters, one for each row.
    pub params: *const Params,
    /// Draws in [0, 1], one for each row.
    pub uniforms: *const f64,
    /// Takes the token id of each row that has one.
    pub tokens: *mut i32,
    /// Takes the information of each row that has a token. May be NULL.
    pub infos: *mut Info,
    /// Takes the error of each row: COLIBRI_STATUS_OK where there is a token.
    pub errors: *mut Error,
    /// The most threads to use, this one among them. 0 counts as 1.
    pub threads: u32,
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        let status = match rejection {
            Rejection::VocabSize(_) => Status::Empty,
            Rejection::Null(_) => Status::Null,
            Rejection::TooLong(_) => Status::TooLong,
            Rejection::OutOfMemory => Status::NoMemory,
            Rejection::Uniform => Status::BadUniform,
            Rejection::Temperature => Status::BadTemperature,
            Rejection::TopK => Status::BadTopK,
            Rejection::MinP => Status::BadMinP,
            Rejection::Logit(_) => Status::BadLogit,
            Rejection::AllMasked => Status::AllMasked,
            Rejection::Stride => Status::BadStride,
            Rejection::Workspace(_) => Status::WorkspaceTooSmall,
        };
        let index = match rejection {
            Rejection::Logit(index) => index,
            _ => 0,
        };
        Error {
            status,
            row: 0,
            index,
        }
    }
}

/// The library's version, as COLIBRI_SAMPLER_VERSION was when it was built.
#[unsafe(no_mangle)]
pub extern "C" fn colibri_sampler_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// A line in English for a status, without a full stop. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn colibri_strerror(status: c_int) -> *const c_char {
    // An int, since C may pass any number for an enum.
    let text = match status {
        0 => c"success",
        1 => c"a pointer that is needed is NULL",
        2 => c"there are no logits",
        3 => c"there are more logits than 32-bit token ids",
        4 => c"the uniform draw is NaN or outside [0, 1]",
        5 => c"the temperature is NaN or out of range",
        6 => c"top_k is negative, or k is not from 1 to the number of logits",
        7 => c"min_p is NaN or outside [0, 1]",
        8 => c"a logit is NaN or +inf",
        9 => c"every logit is -inf",
        10 => c"the stride is less than a row, or the rows are too large",
        11 => c"the workspace is too small",
        12 => c"out of memory",
        13 => c"some rows of the batch failed",
        _ => c"unknown status",
    };
    text.as_ptr()
}

/// Parameters under which colibri_sample draws as serve_sample does at
/// temperature 1 and top_p 1: no filter.
#[unsafe(no_mangle)]
pub extern "C" fn colibri_params_default() -> Params {
    Params::default()
}

/// The bytes of a workspace for rows of n logits, at any alignment; a batch
/// needs as many for each thread. 0 where n is 0 or above INT32_MAX.
#[unsafe(no_mangle)]
pub extern "C" fn colibri_workspace_size(n: usize) -> usize {
    workspace::bytes(n)
}

/// Draws a token id from n logits by the caller's own number in [0, 1].
///
/// With top_k 0 and min_p 0 the token is serve_sample's for the same
/// temperature and top_p, where (double)rand() / RAND_MAX is the number. At
/// temperature 0 it is the argmax, and the number only has to be in range.
///
/// workspace may be NULL: the function allocates. info may be NULL; what it
/// takes costs some time. error may be NULL; it is written to only on failure,
/// token and info only on success.
///
/// # Safety
///
/// logits must point to n readable floats aligned to 4 bytes, and every other
/// pointer that is not NULL to its struct. The workspace must not be in use by
/// another call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_sample(
    logits: *const c_float,
    n: usize,
    params: *const Params,
    uniform: f64,
    workspace: *const Memory,
    token: *mut i32,
    info: *mut Info,
    error: *mut Error,
) -> Status {
    // SAFETY: the caller's promises, stated above, for all that is not NULL.
    let result = unsafe {
        pointers(&[params.cast(), token.cast_const().cast()])
            .and_then(|()| row(logits, n))
            .and_then(|logits| {
                let draw = DrawRequest::new(logits, &*params, uniform)?;
                draw_into(&draw, memory(workspace)?, token, info)
            })
    };
    // SAFETY: as above.
    unsafe { status(result, error) }
}

/// Writes the ids of the k best of n logits, in the order of sampling, and the
/// natural logarithms of their probabilities at a temperature, over the whole
/// vocabulary. A temperature of 0 gives no probabilities and is refused.
///
/// workspace may be NULL: the function allocates. error may be NULL; it is
/// written to only on failure, ids and logprobs only on success.
///
/// # Safety
///
/// logits must point to n readable floats aligned to 4 bytes, ids and logprobs
/// to room for k values, and every other pointer that is not NULL to its struct.
/// The workspace must not be in use by another call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_top_logprobs(
    logits: *const c_float,
    n: usize,
    temperature: c_float,
    k: usize,
    workspace: *const Memory,
    ids: *mut i32,
    logprobs: *mut f64,
    error: *mut Error,
) -> Status {
    // SAFETY: the caller's promises, stated above, for all that is not NULL.
    let result = unsafe {
        pointers(&[ids.cast_const().cast(), logprobs.cast_const().cast()])
            .and_then(|()| row(logits, n))
            .and_then(|logits| {
                let mut place = 0;
                let write = |id, logprob| {
                    ids.add(place).write(id);
                    logprobs.add(place).write(logprob);
                    place += 1;
                };
                sampler::write_top_logprobs(logits, temperature, k, memory(workspace)?, write)
            })
    };
    // SAFETY: as above.
    unsafe { status(result, error) }
}

/// Draws a token from each row of a batch: the same as colibri_sample row by
/// row, on up to batch->threads threads, all of which end before the call
/// returns. It works in a forked child.
///
/// COLIBRI_STATUS_OK when every row has a token, and when there are no rows.
/// COLIBRI_STATUS_BAD_ROWS when some have none; then their errors say why, and
/// the others have their tokens. Any other status is about the batch as a whole,
/// and nothing is written.
///
/// workspace may be NULL: rows allocate. Otherwise it has
/// colibri_workspace_size(vocab_size) bytes for each thread that may be used:
/// as many as rows at most.
///
/// # Safety
///
/// What the batch's fields point to must be there for every row, readable or
/// writable. The workspace must not be in use by another call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_sample_batch(
    batch: *const Batch,
    workspace: *const Memory,
) -> Status {
    // SAFETY: the caller's promises, stated above, for all that is not NULL.
    let result = unsafe {
        pointers(&[batch.cast()]).and_then(|()| sample_rows(&*batch, memory(workspace)?))
    };
    match result {
        Ok(true) => Status::Ok,
        Ok(false) => Status::BadRows,
        Err(rejection) => Error::from(rejection).status,
    }
}

/// Sets a generator to what the PCG library's pcg64_srandom_r makes of a seed
/// and a stream. COLIBRI_STATUS_NULL for a NULL rng.
///
/// # Safety
///
/// rng, unless NULL, must point to a colibri_rng.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_rng_seed(rng: *mut Rng, seed: u64, stream: u64) -> Status {
    if rng.is_null() {
        return Status::Null;
    }
    // SAFETY: not NULL; the rest is the caller's promise.
    unsafe { rng.write(Rng::new(seed, stream)) };
    Status::Ok
}

/// The generator's next number, in [0, 1): the upper 53 of its next 64 bits,
/// over 2^53. NaN for a NULL rng, which colibri_sample refuses.
///
/// # Safety
///
/// rng, unless NULL, must point to a colibri_rng that was seeded or restored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn colibri_rng_uniform(rng: *mut Rng) -> f64 {
    // SAFETY: the caller's promise, unless NULL.
    match unsafe { rng.as_mut() } {
        Some(rng) => rng.uniform(),
        None => f64::NAN,
    }
}

/// Refuses NULL among pointers that are needed.
fn pointers(needed: &[*const u8]) -> Result<(), Rejection> {
    match needed.iter().any(|pointer| pointer.is_null()) {
        true => Err(Rejection::Null("a pointer")),
        false => Ok(()),
    }
}

/// The caller's logits.
///
/// # Safety
///
/// `logits`, unless NULL, points to `n` floats that nobody writes to while the
/// slice lives.
unsafe fn row<'a>(logits: *const c_float, n: usize) -> Result<&'a [f32], Rejection> {
    if n == 0 {
        return Err(Rejection::VocabSize(0));
    }
    // Before a slice is made, whose bytes must not overflow.
    if i32::try_from(n).is_err() {
        return Err(Rejection::TooLong(n));
    }
    if logits.is_null() {
        return Err(Rejection::Null("logits"));
    }
    // SAFETY: not NULL, checked above; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(logits, n) })
}

/// The caller's workspace, if there is one.
///
/// # Safety
///
/// `workspace`, unless NULL, points to one whose memory nobody else uses while
/// the slice lives.
unsafe fn memory<'a>(
    workspace: *const Memory,
) -> Result<Option<&'a mut [MaybeUninit<u8>]>, Rejection> {
    // SAFETY: the caller's promise, unless NULL.
    let Some(&Memory { memory, size }) = (unsafe { workspace.as_ref() }) else {
        return Ok(None);
    };
    if memory.is_null() {
        return Err(Rejection::Null("the workspace's memory"));
    }
    if isize::try_from(size).is_err() {
        // No memory is that large, so the number is wrong.
        return Err(Rejection::Workspace(size));
    }
    // SAFETY: not NULL and not too large, checked above; bytes that may be
    // uninitialised are what the caller promises.
    Ok(Some(unsafe {
        slice::from_raw_parts_mut(memory.cast(), size)
    }))
}

/// Draws, and writes the token and, where there is a place for it, the
/// information.
///
/// # Safety
///
/// `token` can be written to, and `info` unless NULL.
unsafe fn draw_into(
    draw: &DrawRequest<'_>,
    memory: Option<&mut [MaybeUninit<u8>]>,
    token: *mut i32,
    info: *mut Info,
) -> Result<(), Rejection> {
    let way = Way::of_process();
    let id = if info.is_null() {
        sampler::token(draw, memory, way)?
    } else {
        let sample = sampler::sample(draw, memory, way)?;
        // SAFETY: not NULL; the rest is the caller's promise.
        unsafe { info.write(sample.info) };
        sample.token
    };
    // SAFETY: the caller's promise.
    unsafe { token.write(id) };
    Ok(())
}

/// The status of a result, and the error where one is wanted.
///
/// # Safety
///
/// `error`, unless NULL, can be written to.
unsafe fn status(result: Result<(), Rejection>, error: *mut Error) -> Status {
    let Err(rejection) = result else {
        return Status::Ok;
    };
    let found = Error::from(rejection);
    if !error.is_null() {
        // SAFETY: not NULL; the rest is the caller's promise.
        unsafe { error.write(found) };
    }
    found.status
}

/// Draws from each row; whether all have a token.
///
/// # Safety
///
/// The batch's pointers are good for every row.
unsafe fn sample_rows(
    batch: &Batch,
    memory: Option<&mut [MaybeUninit<u8>]>,
) -> Result<bool, Rejection> {
    if batch.rows == 0 {
        return Ok(true);
    }
    pointers(&[
        batch.params.cast(),
        batch.uniforms.cast(),
        batch.tokens.cast_const().cast(),
        batch.errors.cast_const().cast(),
    ])?;
    // SAFETY: the first row is one of the caller's.
    unsafe { row(batch.logits, batch.vocab_size) }?;
    let bytes = (batch.rows - 1)
        .checked_mul(batch.stride)
        .and_then(|floats| floats.checked_add(batch.vocab_size))
        .and_then(|floats| floats.checked_mul(size_of::<c_float>()))
        .and_then(|bytes| isize::try_from(bytes).ok());
    if batch.stride < batch.vocab_size || bytes.is_none() {
        return Err(Rejection::Stride);
    }
    let threads = threads::used(batch.rows, batch.threads as usize);
    let each = workspace::bytes(batch.vocab_size);
    if let Some(memory) = &memory {
        let needed = each.saturating_mul(threads);
        if memory.len() < needed {
            return Err(Rejection::Workspace(needed));
        }
    }
    let rows = Rows {
        batch,
        memory: memory.map(|memory| memory.as_mut_ptr()),
        each,
    };
    // SAFETY: the caller's promise; for_each_row gives each row once, and a
    // thread's number to one thread.
    threads::for_each_row(batch.rows, threads, &|thread, row| unsafe {
        rows.draw(thread, row);
    });
    // SAFETY: the errors of all rows were written.
    let errors = unsafe { slice::from_raw_parts(batch.errors, batch.rows) };
    Ok(errors.iter().all(|error| error.status == Status::Ok))
}

/// The rows of a batch, and memory for each of its threads.
struct Rows<'a> {
    batch: &'a Batch,
    memory: Option<*mut MaybeUninit<u8>>,
    /// Bytes of the memory for a thread.
    each: usize,
}

// SAFETY: `draw` reads what nobody writes, and writes to the row's own places
// and the thread's own memory.
unsafe impl Sync for Rows<'_> {}

impl Rows<'_> {
    /// # Safety
    ///
    /// `row` is one of the batch's, and no two calls have the same one; no two
    /// calls at a time have the same `thread`, which is below the number that
    /// the memory was measured for.
    unsafe fn draw(&self, thread: usize, row: usize) {
        let batch = self.batch;
        // SAFETY: `sample_rows` has checked the bounds of both, and the rest is
        // its caller's promise.
        let (logits, memory) = unsafe {
            let first = batch.logits.add(row * batch.stride);
            let memory = self
                .memory
                .map(|memory| slice::from_raw_parts_mut(memory.add(thread * self.each), self.each));
            (slice::from_raw_parts(first, batch.vocab_size), memory)
        };
        // SAFETY: every field has a place for every row, which is this call's.
        unsafe {
            let info = match batch.infos.is_null() {
                true => batch.infos,
                false => batch.infos.add(row),
            };
            let result =
                DrawRequest::new(logits, &*batch.params.add(row), *batch.uniforms.add(row))
                    .and_then(|draw| draw_into(&draw, memory, batch.tokens.add(row), info));
            let error = match result {
                Ok(()) => Error {
                    status: Status::Ok,
                    row,
                    index: 0,
                },
                Err(rejection) => Error {
                    row,
                    ..Error::from(rejection)
                },
            };
            batch.errors.add(row).write(error);
        }
    }
}
