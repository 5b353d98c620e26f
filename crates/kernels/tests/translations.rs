//! Kernels in the languages of graphics APIs, as wgpu writes them for Vulkan, Metal and Direct3D. No device runs them
//! here: naga finds what it cannot express, and a few rules what another compiler would refuse.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use chaski_kernels::check::{Language, translate, vectors_in_workgroup_memory};
use chaski_kernels::{CoopShape, Kernel};

fn is_full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

/// Kernels that pass a test, one in so many unless all are wanted. Never none.
fn some(one_in: usize, of: impl Fn(&str) -> bool) -> Vec<&'static Kernel> {
    let step = if is_full() { 1 } else { one_in };
    let names = Kernel::names().into_iter().filter(|name| of(name)).step_by(step);
    let some: Vec<&Kernel> = names.map(|name| Kernel::find(name).expect("a name of the list")).collect();
    assert!(!some.is_empty(), "no kernel in the sample");
    some
}

/// Runs a check on all cores; panics with its reports.
fn each(kernels: &[&'static Kernel], check: impl Fn(&Kernel) -> Result<(), String> + Sync) {
    let n_thread = thread::available_parallelism().map_or(1, NonZero::get);
    let wrong: Vec<String> = thread::scope(|s| {
        let check = &check;
        let work = move |i: usize| {
            let mine = kernels.iter().skip(i).step_by(n_thread);
            s.spawn(move || mine.filter_map(|k| check(k).err()).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..n_thread).map(work).collect();
        threads.into_iter().flat_map(|t| t.join().expect("a check does not panic")).collect()
    });
    assert!(wrong.is_empty(), "{} of {} kernels:\n{}", wrong.len(), kernels.len(), wrong.join("\n"));
}

/// Shape of a kernel with cooperative matrices by its name, which only ends with one if it is not the first.
fn shape_of(name: &str) -> Option<CoopShape> {
    let mut numbers = name.rsplit('.').map_while(|n| n.parse().ok());
    let (lanes, side) = (numbers.next()?, numbers.next()?);
    let shape = CoopShape::ALL.into_iter().find(|s| *s == CoopShape { side, lanes });
    shape.filter(|_| name.contains("_coop."))
}

#[test]
fn every_kernel_is_written_in_the_languages_that_can_express_it() {
    let kernels = some(100, |_| true);
    each(&kernels, |k| {
        for language in Language::ALL.into_iter().filter(|l| l.can_express(k)) {
            let written = translate(k, language).map_err(|e| e.to_string())?;
            if written.is_empty() {
                return Err(format!("{}: nothing in {language:?}", k.name));
            }
        }
        Ok(())
    });
    // Which features each language lacks is a fact about naga, and changes with it.
    for k in kernels {
        assert!(Language::SpirV.can_express(k) && Language::Msl.can_express(k), "{}", k.name);
        assert_eq!(Language::Hlsl.can_express(k), !k.features.coop, "{}", k.name);
    }
}

#[test]
fn direct3d_has_no_cooperative_matrices_because_naga_cannot_write_them() {
    let kernel = Kernel::find("measure_coop").expect("a kernel");
    assert!(!Language::Hlsl.can_express(kernel));
    let refused = match catch_unwind(AssertUnwindSafe(|| translate(kernel, Language::Hlsl))) {
        Ok(Ok(text)) => panic!("naga writes them now: test them, too\n{}", String::from_utf8_lossy(&text)),
        Ok(Err(e)) => e.to_string(),
        Err(panic) => panic.downcast_ref::<&str>().map_or_else(String::new, ToString::to_string),
    };
    assert!(refused.contains("CooperativeMatrix"), "{refused}");
}

#[test]
fn cooperative_matrices_of_every_shape_are_written_for_vulkan_and_metal() {
    for shape in CoopShape::ALL.into_iter().filter(|s| *s != CoopShape::WARP) {
        let kernels = some(60, |name| shape_of(name) == Some(shape));
        let side = format!("simdgroup_float{0}x{0}", shape.side);
        each(&kernels, |k| {
            let module = translate(k, Language::SpirV).map_err(|e| e.to_string())?;
            // The capability CooperativeMatrixKHR, and the type.
            let words: Vec<u32> = module.as_chunks().0.iter().map(|w| u32::from_le_bytes(*w)).collect();
            let has = |op: u32| instructions(&words).any(|i| i[0] & 0xffff == op);
            if !instructions(&words).any(|i| i == [2 << 16 | 17, 6022]) || !has(4456) {
                return Err(format!("{}: no cooperative matrices in SPIR-V", k.name));
            }
            let msl = String::from_utf8(translate(k, Language::Msl).map_err(|e| e.to_string())?);
            let msl = msl.map_err(|e| e.to_string())?;
            if !msl.contains(&side) || !msl.contains("simdgroup_store(") {
                return Err(format!("{}: no {side} in MSL", k.name));
            }
            Ok(())
        });
    }
}

/// Instructions of a module, behind its header of five words.
fn instructions(words: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = &words[5..];
    std::iter::from_fn(move || {
        let n_word = (*rest.first()? >> 16) as usize;
        let (first, others) = rest.split_at_checked(n_word.max(1))?;
        rest = others;
        Some(first)
    })
}

#[test]
fn metal_loads_matrices_through_pointers_to_scalars() {
    // naga's functions for it take a pointer to the scalar, which a vector's does not convert to.
    let kernels = some(60, |name| shape_of(name).is_some_and(|s| s.side == 8));
    each(&kernels, |k| {
        let vectors = vectors_in_workgroup_memory(k).map_err(|e| e.to_string())?;
        if vectors.is_empty() {
            Ok(())
        } else {
            Err(format!("{}: vectors in {}", k.name, vectors.join(", ")))
        }
    });
    let other = Kernel::find("mul_mat_coop.q8_0.f32.store.64.64.none.yes").expect("a kernel");
    assert_eq!(vectors_in_workgroup_memory(other).expect("a valid kernel"), ["ws", "xs"]);
}
