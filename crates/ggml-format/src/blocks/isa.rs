//! Functions compiled for instruction sets that the CPU may have, chosen when the program runs.

/// An instruction set.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Isa {
    /// That of every CPU of the target, with vectors of 128 bits.
    Portable,
    /// AVX2, FMA and F16C: vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ, VL and VNNI: vectors of 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Those that this CPU has, the best last.
    pub fn all() -> impl Iterator<Item = Isa> {
        [
            Some(Isa::Portable),
            #[cfg(target_arch = "x86_64")]
            has_avx2().then_some(Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            (has_avx2()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni"))
            .then_some(Isa::Avx512),
        ]
        .into_iter()
        .flatten()
    }

    /// The best that this CPU has.
    pub fn best() -> Isa {
        if cfg!(target_arch = "x86_64") { Isa::all().last().unwrap_or(Isa::Portable) } else { Isa::Portable }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "128-bit vectors",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "AVX-512 VNNI",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// A function compiled for each instruction set but [`Isa::Portable`].
#[derive(Copy, Clone, Debug)]
pub(crate) struct Compiled<F> {
    #[cfg(target_arch = "x86_64")]
    pub(crate) avx2: F,
    #[cfg(target_arch = "x86_64")]
    pub(crate) avx512: F,
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) none: std::marker::PhantomData<F>,
}

impl<F: Copy> Compiled<F> {
    /// The function for an instruction set; `None`: the portable one.
    pub(crate) fn get(&self, isa: Isa) -> Option<F> {
        match isa {
            Isa::Portable => None,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Some(self.avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Some(self.avx512),
        }
    }
}

/// A function with the instructions of [`Isa::Avx2`], as [`has_avx2`] looks for them.
#[cfg(target_arch = "x86_64")]
macro_rules! with_avx2 {
    ($($function:tt)*) => {
        #[target_feature(enable = "avx2,fma,f16c")]
        $($function)*
    };
}

/// A function with the instructions of [`Isa::Avx512`], as [`Isa::all`] looks for them.
#[cfg(target_arch = "x86_64")]
macro_rules! with_avx512 {
    ($($function:tt)*) => {
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
        $($function)*
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use {with_avx2, with_avx512};

/// [`Compiled`] of a function that is inlined, generic in one type.
macro_rules! compiled {
    ($ty:ty, $function:expr, ($($arg:ident: $of:ty),*), $generic:ident: $bound:path) => {{
        #[cfg(target_arch = "x86_64")]
        {
            $crate::blocks::isa::with_avx2! {
                fn avx2<$generic: $bound>($($arg: $of),*) {
                    $function($($arg),*);
                }
            }
            $crate::blocks::isa::with_avx512! {
                fn avx512<$generic: $bound>($($arg: $of),*) {
                    $function($($arg),*);
                }
            }
            Compiled { avx2: avx2::<$generic> as $ty, avx512: avx512::<$generic> as $ty }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Compiled { none: std::marker::PhantomData::<$ty> }
    }};
}
pub(crate) use compiled;
