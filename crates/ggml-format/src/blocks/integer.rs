//! i8, i16, i32 and i64: plain two's complement numbers, one value in a block.

use bytemuck::{Pod, Zeroable};

use crate::blocks::Block;

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Copy, Clone, Debug, Pod, Zeroable)]
        pub struct $name(pub [u8; size_of::<$int>()]);

        impl Block for $name {
            const N_ELEM: usize = 1;

            fn dequantize(&self, y: &mut [f32]) {
                y[0] = <$int>::from_le_bytes(self.0) as f32;
            }
        }
    )*};
}

integers! {
    /// One i8.
    ValueI8(i8);
    /// One i16.
    ValueI16(i16);
    /// One i32; rounded as an f32 beyond 2^24.
    ValueI32(i32);
    /// One i64; rounded as an f32 beyond 2^24.
    ValueI64(i64);
}
