//! Cases of `sample`.

use super::{CHUNK, CHUNK_ALONE, MAX_TOP_K, Sample, SampleParams, reference};
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::step;

pub(super) fn cases() -> Vec<Case> {
    [CHUNK, CHUNK_ALONE].into_iter().flat_map(cases_of).collect()
}

/// Those of workgroups that sort so many values.
fn cases_of(chunk: u32) -> Vec<Case> {
    let mut out = Vec::new();
    for (i, k) in [1, 63, 512, 1024, 1025, 2048, 5000, 32_000, 128_256].into_iter().enumerate() {
        let mut x: Vec<f32> = random_values(i as u64, k as usize).iter().map(|v| v * 6.0).collect();
        if k > 70 {
            x[5] = f32::NEG_INFINITY;
            x[k as usize - 2] = x[7];
        }
        let parts: Vec<[u32; 2]> =
            x.chunks(chunk as usize).enumerate().flat_map(|(i, c)| best(i as u32 * chunk, c)).collect();
        let call = Sample { k, ring: 8, chunk };
        out.push(Case::new(
            format!("chunk k{k} of {chunk}"),
            move |caps| call.chunk(caps),
            vec![
                CaseBuffer::input("x", &x),
                CaseBuffer::output(
                    "y",
                    &vec![0u32; 2 * parts.len()],
                    Expected::Words(parts.iter().flatten().copied().collect()),
                ),
            ],
        ));
        let joined: Vec<[u32; 2]> = parts.chunks(chunk as usize).flat_map(join).collect();
        out.push(Case::new(
            format!("join k{k} of {chunk}"),
            move |caps| call.join(caps, call.n_part()),
            vec![
                CaseBuffer::input("x", &parts.concat()),
                CaseBuffer::output("y", &vec![0u32; 2 * joined.len()], Expected::Words(joined.concat())),
            ],
        ));
        // As in a plan, many lists are joined first: software drivers end a loop after 65,535 turns.
        let lists = if parts.len() > 4096 { joined } else { parts };
        let n_list = lists.len() as u32 / MAX_TOP_K;
        for (j, (top_k, top_p, min_p, temp)) in
            [(40, 0.95, 0.05, 0.8), (1, 1.0, 0.0, 1.0), (64, 1.0, 0.0, 1.5), (10, 0.5, 0.0, 0.3)]
                .into_iter()
                .enumerate()
        {
            let p = SampleParams { top_k, top_p, min_p, temp, seed: 100 * i as u32 + j as u32 };
            let mut before: Vec<u32> = (0..step::HEADER as u32 + 12).collect();
            before[step::PICK] = 2;
            before[step::RING] = 13;
            let token = reference::sample(&x, &p, before[step::DRAWS]);
            let mut after = before.clone();
            let mut ring = vec![9u32; 8];
            step::advance(&mut after, &mut ring, token);
            out.push(Case::new(
                format!("final k{k} of {chunk} top_k{top_k} top_p{top_p} min_p{min_p} temp{temp}"),
                move |caps| call.draw(caps, n_list),
                vec![
                    CaseBuffer::input("x", &lists.concat()),
                    CaseBuffer::input("sampler", &p.words()),
                    CaseBuffer::output("step", &before, Expected::Words(after)),
                    CaseBuffer::output("ring", &[9u32; 8], Expected::Words(ring)),
                ],
            ));
        }
    }
    out
}

/// The 64 largest of a chunk that begins at `first` as (bits, index), missing ones as the kernel marks them.
fn best(first: u32, x: &[f32]) -> Vec<[u32; 2]> {
    let pairs: Vec<[u32; 2]> = x.iter().enumerate().map(|(i, v)| [v.to_bits(), first + i as u32]).collect();
    join(&pairs)
}

/// The 64 largest of some pairs.
fn join(pairs: &[[u32; 2]]) -> Vec<[u32; 2]> {
    let mut c: Vec<(f32, u32)> = pairs.iter().map(|[v, i]| (f32::from_bits(*v), *i)).collect();
    c.resize(c.len().max(MAX_TOP_K as usize), (f32::MIN, u32::MAX));
    c.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    c.truncate(MAX_TOP_K as usize);
    c.into_iter().map(|(v, i)| [v.to_bits(), i]).collect()
}
