//! The bytes of an input, and back.

use std::ffi::c_int;

/// Parameters, one draw and logits.
///
/// As bytes, little-endian: temperature, `top_p` and the raw value of `rand()`,
/// four bytes each; `top_k` (4), `min_p` (4), a position (2), a coding (1); then
/// the values, to the end. The coding says how they make logits: see
/// [`Coding`].
#[derive(Clone, Debug)]
pub struct Input {
    pub temperature: f32,
    pub top_p: f32,
    /// What `rand()` gives.
    pub raw: c_int,
    pub top_k: c_int,
    pub min_p: f32,
    /// Of the token whose end is drawn too; of the alignment.
    pub position: u16,
    pub logits: Vec<f32>,
}

/// How values make logits.
///
/// An input of a kilobyte has to make vocabularies above 512, where the
/// certified path begins, and equal weights far from each other: so a value may
/// be one byte, and the values may be repeated.
#[derive(Clone, Copy)]
struct Coding(u8);

impl Coding {
    /// Four bytes a value, any float; one copy.
    const FLOATS: Coding = Coding(0);

    /// One byte a value: a sixteenth each, the three lowest for -inf, NaN and
    /// +inf.
    fn is_bytes(self) -> bool {
        self.0 & 1 != 0
    }

    /// Each copy lies a quarter below the one before it.
    fn is_sloped(self) -> bool {
        self.0 & 2 != 0
    }

    /// 1 to 64.
    fn copies(self) -> usize {
        usize::from(self.0 >> 2) + 1
    }

    fn values(self, bytes: &[u8]) -> Vec<f32> {
        if !self.is_bytes() {
            let floats = bytes.chunks_exact(4);
            return floats
                .map(|float| f32::from_le_bytes(float.try_into().unwrap()))
                .collect();
        }
        let of_byte = |&byte: &u8| match byte as i8 {
            -128 => f32::NEG_INFINITY,
            -127 => f32::NAN,
            -126 => f32::INFINITY,
            step => f32::from(step) / 16.0,
        };
        bytes.iter().map(of_byte).collect()
    }

    fn logits(self, bytes: &[u8]) -> Vec<f32> {
        let values = self.values(bytes);
        let slope = if self.is_sloped() { 0.25 } else { 0.0 };
        (0..self.copies())
            .flat_map(|copy| values.iter().map(move |value| value - copy as f32 * slope))
            .collect()
    }
}

const HEAD: usize = 23;

impl Input {
    /// None where there are no logits.
    pub fn decode(bytes: &[u8]) -> Option<Input> {
        let (head, values) = bytes.split_at_checked(HEAD)?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let logits = Coding(head[22]).logits(values);
        (!logits.is_empty()).then(|| Input {
            temperature: f32::from_bits(word(0)),
            top_p: f32::from_bits(word(4)),
            raw: word(8) as c_int,
            top_k: word(12) as c_int,
            min_p: f32::from_bits(word(16)),
            position: u16::from_le_bytes([head[20], head[21]]),
            logits,
        })
    }

    /// Bytes that decode to it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + 4 * self.logits.len());
        bytes.extend(self.temperature.to_le_bytes());
        bytes.extend(self.top_p.to_le_bytes());
        bytes.extend(self.raw.to_le_bytes());
        bytes.extend(self.top_k.to_le_bytes());
        bytes.extend(self.min_p.to_le_bytes());
        bytes.extend(self.position.to_le_bytes());
        bytes.push(Coding::FLOATS.0);
        bytes.extend(self.logits.iter().flat_map(|logit| logit.to_le_bytes()));
        bytes
    }
}
