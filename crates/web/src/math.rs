//! Functions of the C library that browsers have: the linker prefers these to those of the compiler, which are 14 kB.
#![allow(unsafe_code, reason = "the linker finds functions by their names")]

use js_sys::Math;

// SAFETY (of all names here): each function has the signature and the meaning of its namesake in C.

#[unsafe(no_mangle)]
extern "C" fn sin(x: f64) -> f64 {
    Math::sin(x)
}

#[unsafe(no_mangle)]
extern "C" fn cos(x: f64) -> f64 {
    Math::cos(x)
}

#[unsafe(no_mangle)]
extern "C" fn pow(x: f64, y: f64) -> f64 {
    Math::pow(x, y)
}

#[unsafe(no_mangle)]
extern "C" fn expm1(x: f64) -> f64 {
    Math::expm1(x)
}

#[unsafe(no_mangle)]
extern "C" fn log1p(x: f64) -> f64 {
    Math::log1p(x)
}

#[unsafe(no_mangle)]
extern "C" fn tanh(x: f64) -> f64 {
    Math::tanh(x)
}
