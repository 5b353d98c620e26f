//! Every kernel renders, and naga takes it.
#![cfg(feature = "check")]

use chaski_kernels::{Kernel, check};

#[test]
fn every_kernel_is_valid() {
    let n = check::check_all().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(n, Kernel::names().len());
}
