//! What the tests share. Benches and examples take single files of it by
//! `#[path]`.

pub mod cases;
pub mod host;
pub mod rand;
pub mod shapes;
pub mod ways;
