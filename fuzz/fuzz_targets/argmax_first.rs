#![no_main]

use colibri_sampler_fuzz::compare_argmax;
use colibri_sampler_fuzz::input::Input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(input) = Input::decode(bytes) {
        compare_argmax(&input);
    }
});
