//! The results of `chaski tune` in the cache directory, which every start reads.

use chaski::gpu::AdapterSummary;
use chaski::kernels::{ActivationPrecision, MatVecTune, ProductClass, Tuned, Tuning};
use serde_json::{Value, json};

use crate::cache;

/// Version of the tuning; files of another version are ignored.
const VERSION: u64 = 2;

/// Thread counts as JSON.
pub(crate) fn tune_json(t: &MatVecTune) -> Value {
    json!({ "fill": t.fill, "team": t.team, "inputs": t.act.word(), "doubled": t.doubled })
}

/// The results on an adapter as JSON.
pub(crate) fn to_json(adapter: &str, driver: &str, tuning: &Tuning) -> Value {
    let row = |t: &Tuned| {
        let c = &t.class;
        json!({
            "format": c.format, "epilogue": c.epilogue, "n_row": c.n_row, "n_col": c.n_col,
            "tune": tune_json(&t.tune),
        })
    };
    let products: Vec<Value> = tuning.products.iter().map(row).collect();
    json!({ "version": VERSION, "adapter": adapter, "driver": driver, "products": products })
}

/// Earlier results on an adapter; empty if there is no file of this version.
pub(crate) fn known(s: &AdapterSummary) -> Tuning {
    let read = || {
        let path = cache::folder("tuning")?.join(cache::file_of(s, "json"));
        let text = std::fs::read_to_string(path).ok()?;
        from_json(&serde_json::from_str(&text).ok()?)
    };
    read().unwrap_or_default()
}

fn from_json(v: &Value) -> Option<Tuning> {
    if v["version"].as_u64() != Some(VERSION) {
        return None;
    }
    let number = |v: &Value| v.as_u64().and_then(|n| u32::try_from(n).ok());
    let row = |v: &Value| {
        let t = &v["tune"];
        let act = [ActivationPrecision::F32, ActivationPrecision::I16]
            .into_iter()
            .find(|a| t["inputs"].as_str() == Some(a.word()))?;
        let fill = number(&t["fill"]).filter(|f| (256..=1 << 20).contains(f))?;
        let team = number(&t["team"]).filter(|t| (MatVecTune::LEAST_TEAM..=1024).contains(t))?;
        let class = ProductClass {
            format: v["format"].as_str()?.to_owned(),
            epilogue: v["epilogue"].as_str()?.to_owned(),
            n_row: number(&v["n_row"])?,
            n_col: number(&v["n_col"])?,
        };
        let doubled = t["doubled"].as_bool()?;
        Some(Tuned { class, tune: MatVecTune { fill, team, act, doubled } })
    };
    Some(Tuning { products: v["products"].as_array()?.iter().filter_map(row).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_nonsense_is_not() {
        let class = ProductClass { format: "q4_K+q6_K".into(), epilogue: "glu".into(), n_row: 7, n_col: 256 };
        let tune = MatVecTune { fill: 4096, team: 128, act: ActivationPrecision::I16, doubled: true };
        let tuning = Tuning { products: vec![Tuned { class, tune }] };
        let mut v = to_json("an adapter", "1.0", &tuning);
        assert_eq!(from_json(&v), Some(tuning));
        v["products"][0]["tune"]["fill"] = 0.into();
        assert_eq!(from_json(&v), Some(Tuning::default()));
        v["version"] = 0.into();
        assert_eq!(from_json(&v), None);
    }
}
