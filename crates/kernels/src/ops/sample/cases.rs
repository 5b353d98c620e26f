//! Cases of `sample`.

use super::{CHUNK, CHUNK_ALONE, DRAWS_AT, MAX_TOP_K, N_DRAW, N_WORD, Sample, SampleParams, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;
use crate::step::cases::{N_SEQ, Picked, seq_of};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for chunk in [CHUNK, CHUNK_ALONE] {
        for (i, k) in [1, 63, 512, 1024, 1025, 2048, 5000, 32_000, 128_256].into_iter().enumerate() {
            for n_row in [1, 2, 7, 64] {
                if n_row == 1 || k * n_row as u32 <= 64_000 {
                    out.extend(cases_of(chunk, i as u64, k, n_row));
                }
            }
        }
    }
    out
}

/// Slots per ring.
const RING: u32 = 8;

/// Cases with workgroups that sort `chunk` values.
fn cases_of(chunk: u32, seed: u64, k: u32, n_row: usize) -> Vec<Case> {
    let mut out = Vec::new();
    let Picked { choice, words: before } = Picked::new(n_row, RING, 125);
    let ld = k.next_multiple_of(8);
    let call = Sample { k, ld, n_row: n_row as u32, choice, chunk };
    let mut x: Vec<f32> = random_values(seed, ld as usize * n_row).iter().map(|v| v * 6.0).collect();
    if k > 70 {
        for row in x.chunks_mut(ld as usize) {
            row[5] = f32::NEG_INFINITY;
            row[k as usize - 2] = row[7];
        }
    }
    let rows: Vec<&[f32]> = x.chunks(ld as usize).map(|row| &row[..k as usize]).collect();
    let parts: Vec<Vec<[u32; 2]>> = rows.iter().map(|row| lists_of(chunk, row)).collect();
    let words = |lists: &[Vec<[u32; 2]>]| lists.concat().concat();
    out.push(Case::new(
        format!("chunk k{k} of {chunk} rows{n_row}"),
        move |caps| call.chunk(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &vec![0u32; words(&parts).len()], Expected::Words(words(&parts))),
        ],
    ));
    let joined: Vec<Vec<[u32; 2]>> =
        parts.iter().map(|p| p.chunks(chunk as usize).flat_map(join).collect()).collect();
    out.push(Case::new(
        format!("join k{k} of {chunk} rows{n_row}"),
        move |caps| call.join(caps, call.n_part()),
        vec![
            CaseBuffer::input("x", &words(&parts)),
            CaseBuffer::output("y", &vec![0u32; words(&joined).len()], Expected::Words(words(&joined))),
        ],
    ));
    // Plans also merge large numbers of lists first: software drivers end a loop after 65,535 iterations.
    let lists = if parts[0].len() > 4096 { joined } else { parts };
    let n_list = lists[0].len() as u32 / MAX_TOP_K;
    let params = [(40, 0.95, 0.05, 0.8), (1, 1.0, 0.0, 1.0), (64, 1.0, 0.0, 1.5), (10, 0.5, 0.0, 0.3)];
    for (top_k, top_p, min_p, temp) in params {
        let p = SampleParams { top_k, top_p, min_p, temp };
        // The sequences of odd rows are greedy; those without a row have invalid parameters.
        let mut sampler = vec![0x7fc0_0000; N_WORD * N_SEQ as usize];
        let mut tokens = Vec::new();
        for (row, logits) in rows.iter().enumerate() {
            let seq = seq_of(row, n_row);
            let own = if row % 2 == 0 { p } else { SampleParams::GREEDY };
            let uniforms: Vec<f32> = random_values(seed + 31 * row as u64, N_DRAW as usize)
                .iter()
                .map(|v| v.abs().min(0.999))
                .collect();
            let at = N_WORD * seq as usize;
            sampler[at..at + DRAWS_AT].copy_from_slice(&own.words());
            uniforms.iter().zip(&mut sampler[at + DRAWS_AT..]).for_each(|(u, word)| *word = u.to_bits());
            let n_chosen = before[choice.seq_at(seq)];
            tokens.push(reference::sample(logits, &own, uniforms[(n_chosen % N_DRAW) as usize]));
        }
        let ring_before = vec![9u32; (RING * N_SEQ) as usize];
        let (mut after, mut ring) = (before.clone(), ring_before.clone());
        choice.advance(&mut after, &mut ring, &tokens);
        out.push(Case::new(
            format!("final k{k} of {chunk} rows{n_row} top_k{top_k} top_p{top_p} min_p{min_p} temp{temp}"),
            move |caps| call.draw(caps, n_list),
            vec![
                CaseBuffer::input("x", &words(&lists)),
                CaseBuffer::input("sampler", &sampler),
                CaseBuffer::output("step", &before, Expected::Words(after)),
                CaseBuffer::output("ring", &ring_before, Expected::Words(ring)),
            ],
        ));
    }
    out
}

/// The lists of all chunks of a row.
pub(crate) fn lists_of(chunk: u32, row: &[f32]) -> Vec<[u32; 2]> {
    row.chunks(chunk as usize).enumerate().flat_map(|(i, c)| best(i as u32 * chunk, c)).collect()
}

/// The 64 largest of a chunk that begins at `first` as (bits, index), padded with the kernel's sentinel.
fn best(first: u32, x: &[f32]) -> Vec<[u32; 2]> {
    let pairs: Vec<[u32; 2]> = x.iter().enumerate().map(|(i, v)| [v.to_bits(), first + i as u32]).collect();
    join(&pairs)
}

/// The 64 largest of some pairs.
pub(crate) fn join(pairs: &[[u32; 2]]) -> Vec<[u32; 2]> {
    let mut c: Vec<(f32, u32)> = pairs.iter().map(|[v, i]| (f32::from_bits(*v), *i)).collect();
    c.resize(c.len().max(MAX_TOP_K as usize), (f32::MIN, u32::MAX));
    c.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    c.truncate(MAX_TOP_K as usize);
    c.into_iter().map(|(v, i)| [v.to_bits(), i]).collect()
}
