//! End-to-end runs of the command on small models.

use ggml_format::{
    FILE_TYPES, FileType, ImatrixEntry, SplitName, TYPES, TensorInfo, dequantize, mix_order, quantize,
};

use super::*;

const N_LAYER: u32 = 2;

fn run(args: Args) -> Result<()> {
    super::run(args, &Ui::silent())
}

/// Varied values, the same each time.
fn values(n: u64, start: u64) -> Vec<f32> {
    (0..n).map(|i| (((i + start) as f32 * 0.37).sin() * 3.0 + (i % 7) as f32 * 0.1) * 0.05).collect()
}

fn tensors() -> Vec<(String, Vec<u64>)> {
    let mut tensors =
        vec![("token_embd.weight".to_owned(), vec![256, 40]), ("output_norm.weight".to_owned(), vec![256])];
    for layer in 0..N_LAYER {
        let mut add = |name: &str, ne: &[u64]| tensors.push((format!("blk.{layer}.{name}"), ne.to_vec()));
        add("attn_v.weight", &[256, 64]);
        add("attn_norm.weight", &[256]);
        add("ffn_up.weight", &[256, 96]);
        // Rows shorter than a block of 256.
        add("ffn_down.weight", &[96, 256]);
        // More values than one thread takes at once, with a remainder.
        add("attn_q.weight", &[256, 1500]);
        add("ffn_gate_exps.weight", &[256, 32, 3]);
    }
    tensors
}

/// Writes a model, or one file of a set of two.
fn write_model(path: &Path, ty: GgmlType, shard: Option<u16>) {
    let tensors: Vec<_> = tensors().into_iter().enumerate().collect();
    let n_tensor = tensors.len();
    let ours = |i: usize| shard.is_none_or(|shard| usize::from(shard) == i % 2);
    let mut head = GgufWriter::new();
    if shard != Some(1) {
        head.set("general.architecture", "llama").unwrap();
        head.set("general.file_type", 1u32).unwrap();
        head.set("llama.block_count", N_LAYER).unwrap();
        head.set("llama.attention.head_count", 4u32).unwrap();
        head.set("llama.attention.head_count_kv", 1u32).unwrap();
        head.set("a.note", "kept").unwrap();
    }
    if let Some(shard) = shard {
        head.set("split.no", shard).unwrap();
        head.set("split.count", 2u16).unwrap();
        head.set("split.tensors.count", n_tensor as i32).unwrap();
    }
    let type_of = |ne: &[u64]| if ne.len() == 1 { GgmlType::F32 } else { ty };
    for (_, (name, ne)) in tensors.iter().filter(|(i, _)| ours(*i)) {
        head.tensor(name, ne, type_of(ne)).unwrap();
    }
    let mut data = head.begin(Vec::new()).unwrap();
    for (i, (name, ne)) in tensors.iter().filter(|(i, _)| ours(*i)) {
        let x = values(ne.iter().product(), *i as u64);
        data.write(name, &quantized(type_of(ne), &x, ne[0])).unwrap();
    }
    fs::write(path, data.finish().unwrap()).unwrap();
}

fn quantized(ty: GgmlType, x: &[f32], n_per_row: u64) -> Vec<u8> {
    let n_row = x.len() as u64 / n_per_row;
    let mut bytes = vec![0; (ty.row_bytes(n_per_row).unwrap() * n_row) as usize];
    quantize(ty, x, n_per_row as usize, None, &mut bytes).unwrap();
    bytes
}

fn args(dir: &Path, file_type: FileType) -> Args {
    Args {
        target: Target::Mix(file_type),
        threads: Some(2),
        ..Args::plain(dir.join("in.gguf"), dir.join("out.gguf"))
    }
}

fn bytes_of(model: &Model, tensor: &TensorInfo) -> Vec<u8> {
    let mut bytes = vec![0; tensor.n_byte as usize];
    pollster::block_on(model.read_tensor(tensor, 0, &mut bytes)).unwrap();
    bytes
}

#[test]
fn tensors_equal_those_that_are_quantised_at_once() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
    for file_type in [FileType::Q4_K_M, FileType::Q8_0, FileType::BF16, FileType::MXFP4_MOE] {
        run(args(dir.path(), file_type)).unwrap();
        let model = open(&dir.path().join("out.gguf")).unwrap();
        let mut n_changed = 0;
        for (i, (name, ne)) in tensors().iter().enumerate() {
            let found = model.tensor(name).unwrap();
            let x = values(ne.iter().product(), i as u64);
            assert_eq!(bytes_of(&model, found), quantized(found.ty, &x, ne[0]), "{file_type} {name}");
            n_changed += usize::from(found.ty != GgmlType::F32);
        }
        assert_eq!(n_changed, tensors().len() - 1 - N_LAYER as usize);
        let names: Vec<_> = model.tensors().iter().map(|t| mix_order(&t.name)).collect();
        assert!(names.is_sorted());
        assert_eq!(model.metadata().u32("general.file_type").unwrap(), file_type.id());
        assert_eq!(model.metadata().u32("general.quantization_version").unwrap(), 2);
        assert_eq!(model.metadata().str("a.note").unwrap(), "kept");
    }
}

fn types(dir: &Path, args: &Args) -> Vec<(String, GgmlType)> {
    let model = open(&dir.join("in.gguf")).unwrap();
    plan(&model, &args.wishes().unwrap()).unwrap().iter().map(|s| (s.tensor.name.clone(), s.ty)).collect()
}

fn type_of(types: &[(String, GgmlType)], name: &str) -> GgmlType {
    types.iter().find(|t| t.0 == name).unwrap().1
}

#[test]
fn rules_overrides_and_purity_decide_the_types() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
    let mut args = args(dir.path(), FileType::Q4_K_M);
    let found = types(dir.path(), &args);
    assert_eq!(type_of(&found, "token_embd.weight"), GgmlType::Q6_K);
    assert_eq!(type_of(&found, "blk.0.attn_norm.weight"), GgmlType::F32);
    assert_eq!(type_of(&found, "blk.0.ffn_up.weight"), GgmlType::Q4_K);
    // Of two layers only the last gets more bits; rows of 96 have no K-quant.
    assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q6_K);
    assert_eq!(type_of(&found, "blk.0.ffn_down.weight"), GgmlType::Q5_0);
    assert_eq!(type_of(&found, "blk.1.ffn_down.weight"), GgmlType::Q8_0);

    args.pure = true;
    let found = types(dir.path(), &args);
    assert_eq!(type_of(&found, "token_embd.weight"), GgmlType::Q4_K);
    assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q4_K);
    assert_eq!(type_of(&found, "blk.1.ffn_down.weight"), GgmlType::Q5_0);
    assert_eq!(type_of(&found, "output_norm.weight"), GgmlType::F32);

    args.tensor_type = vec![parse_override("blk.1.attn=q8_0").unwrap(), parse_override("attn=f16").unwrap()];
    let found = types(dir.path(), &args);
    assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q8_0);
    assert_eq!(type_of(&found, "blk.0.attn_v.weight"), GgmlType::F16);
    assert_eq!(type_of(&found, "blk.0.attn_norm.weight"), GgmlType::F32);

    let model = open(&args.input).unwrap();
    args.tensor_type = vec![parse_override("atn_v=q8_0").unwrap()];
    let error = plan(&model, &args.wishes().unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with("--tensor-type atn_v=q8_0: no remaining matrix has a name that matches"),
        "{error}"
    );
    args.tensor_type = vec![parse_override("ffn_down=q4_K").unwrap()];
    let error = plan(&model, &args.wishes().unwrap()).unwrap_err().to_string();
    let expected =
        "tensor `blk.0.ffn_down.weight`: q4_K needs a row length that is a multiple of 256, found 96";
    assert_eq!(error, expected);
}

#[test]
fn a_split_set_becomes_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("in-00001-of-00002.gguf");
    write_model(&first, GgmlType::F16, Some(0));
    write_model(&dir.path().join("in-00002-of-00002.gguf"), GgmlType::F16, Some(1));
    run(Args { input: first, ..args(dir.path(), FileType::Q4_0) }).unwrap();
    let model = open(&dir.path().join("out.gguf")).unwrap();
    assert_eq!(model.tensors().len(), tensors().len());
    assert!(model.metadata().iter().all(|(key, _)| !key.starts_with("split.")));
    assert_eq!(model.tensor("blk.1.attn_q.weight").unwrap().ty, GgmlType::Q4_0);
}

#[test]
fn quantised_input_is_refused_unless_allowed() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::Q8_0, None);
    let error = run(args(dir.path(), FileType::Q4_0)).unwrap_err().to_string();
    let expected = "tensor `token_embd.weight`: expected f32, f16 or bf16, found q8_0, which is already \
                    quantised; use the original model, or accept the loss with --allow-requantize";
    assert_eq!(error, expected);
    assert!(!dir.path().join("out.gguf").exists());
    run(Args { allow_requantize: true, ..args(dir.path(), FileType::Q4_0) }).unwrap();
    // Tensors that already have the type are copied.
    run(args(dir.path(), FileType::Q8_0)).unwrap();
    let (input, output) =
        (open(&dir.path().join("in.gguf")).unwrap(), open(&dir.path().join("out.gguf")).unwrap());
    for t in input.tensors() {
        assert_eq!(bytes_of(&input, t), bytes_of(&output, output.tensor(&t.name).unwrap()), "{}", t.name);
    }
}

#[test]
fn a_dry_run_writes_nothing_and_lists_all_tensors() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
    run(Args { dry_run: true, ..args(dir.path(), FileType::Q4_K_M) }).unwrap();
    // Sizes can be printed without the importance matrix that writing would need, too.
    run(Args { dry_run: true, ..args(dir.path(), FileType::IQ2_XXS) }).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let model = open(&dir.path().join("in.gguf")).unwrap();
    let args = args(dir.path(), FileType::Q8_0);
    let mut table = Vec::new();
    let mut steps = plan(&model, &args.wishes().unwrap()).unwrap();
    let files = layout(&args.output, Split::Tensors(5), &mut steps).unwrap();
    print_table(&steps, &files, &[2048; 3], &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert_eq!(table.lines().count(), tensors().len() + 3 + 1);
    let row = "blk.0.attn_v.weight                256 x 64      f16 -> q8_0        17.00 KiB";
    assert!(table.lines().any(|line| line.split_whitespace().eq(row.split_whitespace())), "{table}");
    assert!(table.lines().last().unwrap().starts_with("14 tensors, "), "{table}");
}

/// A model of one tensor of f32.
fn write_one(dir: &Path, name: &str, ne: &[u64], x: &[f32]) {
    let mut head = GgufWriter::new();
    head.set("general.architecture", "llama").unwrap();
    head.tensor(name, ne, GgmlType::F32).unwrap();
    let mut data = head.begin(Vec::new()).unwrap();
    data.write(name, &quantized(GgmlType::F32, x, ne[0])).unwrap();
    fs::write(dir.join("in.gguf"), data.finish().unwrap()).unwrap();
}

#[test]
fn values_that_are_not_finite_are_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut x = values(96, 0);
    x[70] = f32::NAN;
    let copied = "row 2, from column 6: expected finite values, found another";
    for (name, target, want) in [
        (
            "blk.0.ffn_up.weight",
            Target::Mix(FileType::Q8_0),
            "row 2, column 6: expected a finite value, found NaN",
        ),
        ("blk.0.ffn_up.weight", Target::Copy, copied),
        ("blk.0.attn_norm.weight", Target::Mix(FileType::Q8_0), copied),
    ] {
        write_one(dir.path(), name, &[32, 3], &x);
        let args = Args { target, ..args(dir.path(), FileType::Q8_0) };
        let error = format!("{:#}", run(args).unwrap_err());
        assert!(error.ends_with(want), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn types_that_rows_do_not_fit_are_replaced_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    write_one(dir.path(), "blk.0.ffn_up.weight", &[96, 2], &values(192, 0));
    let said = |args: &Args| {
        let model = open(&args.input).unwrap();
        replaced_types(&plan(&model, &args.wishes().unwrap()).unwrap())
    };
    let mut args = args(dir.path(), FileType::Q4_K_M);
    let want = "matrices whose row length does not fit the mix's type: 1; the first is \
        `blk.0.ffn_up.weight`, which gets q5_0 for rows of 96";
    assert_eq!(said(&args).as_deref(), Some(want));
    args.tensor_type = vec![parse_override("ffn_up=q8_0").unwrap()];
    assert_eq!(said(&args), None);
    args.target = Target::Mix(FileType::Q8_0);
    args.tensor_type.clear();
    assert_eq!(said(&args), None);
    args.target = Target::Pure(FileType::Q4_K_M);
    assert!(said(&args).is_some());
    // The mix itself has this type, whatever the row length.
    write_one(dir.path(), "output.weight", &[96, 2], &values(192, 0));
    args.target = Target::Mix(FileType::MXFP4_MOE);
    assert_eq!(said(&args), None);
}

/// Everything in a folder: names and contents.
fn contents(dir: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

#[test]
fn an_input_is_safe_whatever_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("out.gguf.part");
    write_model(&input, GgmlType::F16, None);
    let before = fs::read(&input).unwrap();
    run(Args { input: input.clone(), ..args(dir.path(), FileType::Q8_0) }).unwrap();
    assert!(fs::read(&input).unwrap() == before);
    assert_eq!(contents(dir.path()).into_keys().collect::<Vec<_>>(), ["out.gguf", "out.gguf.part"]);
}

#[test]
fn importance_and_overrides_are_inputs_too() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
    let imatrix = write_imatrix(dir.path());
    let types = dir.path().join("types.txt");
    fs::write(&types, "attn_v=q8_0").unwrap();
    let before = contents(dir.path());
    let args = Args {
        imatrix: Some(imatrix.clone()),
        tensor_type_file: Some(types.clone()),
        ..args(dir.path(), FileType::Q8_0)
    };
    for output in [imatrix, types] {
        let error = run(Args { output, ..args.clone() }).unwrap_err().to_string();
        assert!(error.ends_with("the output must not be an input file"), "{error}");
    }
    assert!(contents(dir.path()) == before);
}

#[test]
fn the_input_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.gguf");
    write_model(&input, GgmlType::F16, None);
    let error = run(Args { output: input, ..args(dir.path(), FileType::Q8_0) }).unwrap_err().to_string();
    assert!(error.ends_with("the output must not be an input file"), "{error}");
}

/// Importance of the columns of all matrices but the embeddings: the first columns count most.
fn imatrix() -> Imatrix {
    let mut imatrix =
        Imatrix { n_chunk: 3, chunk_len: 8, datasets: vec!["t.txt".into()], ..Default::default() };
    for (name, ne) in tensors().iter().filter(|(name, ne)| ne.len() > 1 && name != "token_embd.weight") {
        let n_mat = ne.get(2).copied().unwrap_or(1);
        let of_mat = |mat: u64| (0..ne[0]).map(move |j| 24.0 * (1 + mat) as f32 / (1 + j % 32) as f32);
        let counts = (0..n_mat).map(|mat| (24 * mat) as f32).collect::<Vec<_>>();
        let counts = if n_mat == 1 { vec![24.0] } else { counts };
        let entry = ImatrixEntry::new(name, (0..n_mat).flat_map(of_mat).collect(), counts).unwrap();
        imatrix.entries.insert(name.clone(), entry);
    }
    imatrix
}

fn write_imatrix(dir: &Path) -> PathBuf {
    let path = dir.join("imatrix.gguf");
    fs::write(&path, imatrix().write(Vec::new()).unwrap()).unwrap();
    path
}

#[test]
fn every_file_type_is_written_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::BF16, None);
    let imatrix = write_imatrix(dir.path());
    for info in FILE_TYPES {
        let mut args = args(dir.path(), info.file_type);
        args.imatrix = Some(imatrix.clone());
        if info.file_type == FileType::Q1_0 {
            // There is no smaller type for rows of 96 in such a file.
            let error = run(args.clone()).unwrap_err().to_string();
            assert!(
                error.starts_with("tensor `blk.0.ffn_down.weight`: expected rows of a multiple of 128"),
                "{error}"
            );
            args.tensor_type = vec![parse_override("ffn_down=q8_0").unwrap()];
        }
        run(args).unwrap_or_else(|e| panic!("{}: {e:#}", info.name));
        let model = open(&dir.path().join("out.gguf")).unwrap();
        assert_eq!(model.metadata().u32("general.file_type").unwrap(), info.id);
        for t in model.tensors() {
            assert_eq!((t.ty.info().invalid_block)(&bytes_of(&model, t)), None, "{} {}", info.name, t.name);
        }
        let up = model.tensor("blk.0.ffn_up.weight").unwrap();
        let (mut y, x) = (vec![0.0; up.n_elem() as usize], values(up.n_elem(), 4));
        dequantize(up.ty, &bytes_of(&model, up), &mut y).unwrap();
        let square = |x: &[f32]| x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        let diff: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
        // The ternary and one-bit types resolve the least.
        let error = (square(&diff) / square(&x)).sqrt();
        assert!(error < 0.85, "{}: {error}", info.name);
    }
}

#[test]
fn types_of_few_bits_are_refused_without_importance() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
    let iq2 = args(dir.path(), FileType::IQ2_XXS);
    let error = run(iq2.clone()).unwrap_err().to_string();
    let expected = "tensor `blk.0.attn_q.weight`: iq2_xxs needs an importance matrix with this tensor; \
                    compute one with `chaski imatrix` and pass it with --imatrix, or choose another type";
    assert_eq!(error, expected);
    // A matrix without an entry for the tensor does not help.
    let exclude_weights = vec!["blk.1.ffn_up".to_owned()];
    let imatrix = Some(write_imatrix(dir.path()));
    let error =
        run(Args { imatrix: imatrix.clone(), exclude_weights, ..iq2.clone() }).unwrap_err().to_string();
    assert!(
        error.starts_with("tensor `blk.1.ffn_up.weight`: ") && error.contains("importance matrix"),
        "{error}"
    );
    let include_weights = vec!["no such tensor".to_owned()];
    let error = run(Args { imatrix, include_weights, ..iq2 }).unwrap_err().to_string();
    assert!(error.ends_with("--include-weights and --exclude-weights leave no entry"), "{error}");
    assert!(!dir.path().join("out.gguf").exists());
}

#[test]
fn importance_reaches_each_matrix_of_a_tensor() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
    run(Args { imatrix: Some(write_imatrix(dir.path())), ..args(dir.path(), FileType::Q4_K_S) }).unwrap();
    let model = open(&dir.path().join("out.gguf")).unwrap();
    let (name, ne) = &tensors()[7];
    assert_eq!((name.as_str(), ne.as_slice()), ("blk.0.ffn_gate_exps.weight", &[256, 32, 3][..]));
    let tensor = model.tensor(name).unwrap();
    let importance = imatrix().importance(name, 256, 3).unwrap().unwrap();
    let x = values(256 * 32 * 3, 7);
    let mut expected = Vec::new();
    for (x, w) in x.chunks(256 * 32).zip(importance.chunks(256)) {
        let mut bytes = vec![0; 144 * 32];
        quantize(tensor.ty, x, 256, Some(w), &mut bytes).unwrap();
        expected.extend(bytes);
    }
    assert_eq!(tensor.ty, GgmlType::Q4_K);
    assert_eq!(bytes_of(&model, tensor), expected);
    assert_ne!(expected, quantized(tensor.ty, &x, 256));
    let metadata = model.metadata();
    assert!(metadata.str("quantize.imatrix.file").unwrap().ends_with("imatrix.gguf"));
    assert_eq!(metadata.str("quantize.imatrix.dataset").unwrap(), "t.txt");
    assert_eq!(metadata.u32("quantize.imatrix.entries_count").unwrap(), 10);
    assert_eq!(metadata.u32("quantize.imatrix.chunks_count").unwrap(), 3);
}

#[test]
fn an_importance_matrix_of_another_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
    let mut other = imatrix();
    let entry = ImatrixEntry::new("", vec![1.0; 64], vec![1.0]).unwrap();
    other.entries.insert("blk.1.attn_v.weight".to_owned(), entry);
    let path = dir.path().join("imatrix.gguf");
    fs::write(&path, other.write(Vec::new()).unwrap()).unwrap();
    let args = Args { imatrix: Some(path), ..args(dir.path(), FileType::Q4_0) };
    let error = format!("{:#}", run(args.clone()).unwrap_err());
    let expected =
        "tensor `blk.1.attn_v.weight`: expected importance for 256 columns of 1 matrices, found 64 values";
    assert_eq!(error, expected);
    let entry = ImatrixEntry::new("", vec![1.0; 64], vec![1.0]).unwrap();
    let foreign = Imatrix { entries: [("foo.weight".to_owned(), entry)].into(), ..imatrix() };
    let path = args.imatrix.clone().unwrap();
    fs::write(&path, foreign.write(Vec::new()).unwrap()).unwrap();
    let error = run(args.clone()).unwrap_err().to_string();
    assert!(error.ends_with("is it for another model?"), "{error}");
    // It would apply to nothing, as nothing is quantised.
    run(Args { target: Target::Mix(FileType::F16), ..args }).unwrap();
}

#[test]
fn embeddings_and_output_have_options_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.gguf");
    let mut head = GgufWriter::new();
    head.set("general.architecture", "llama").unwrap();
    for name in ["token_embd.weight", "output.weight", "blk.0.attn_q.weight"] {
        head.tensor(name, &[256, 2], GgmlType::F16).unwrap();
    }
    let mut data = head.begin(Vec::new()).unwrap();
    for name in ["token_embd.weight", "output.weight", "blk.0.attn_q.weight"] {
        data.write(name, &quantized(GgmlType::F16, &values(512, 0), 256)).unwrap();
    }
    fs::write(&input, data.finish().unwrap()).unwrap();

    let found = |args: &Args| {
        let types = types(dir.path(), args);
        ["token_embd.weight", "output.weight", "blk.0.attn_q.weight"].map(|name| type_of(&types, name).name())
    };
    let mut args = args(dir.path(), FileType::Q4_K_M);
    assert_eq!(found(&args), ["q4_K", "q6_K", "q4_K"]);
    args.tensor_type = vec![parse_override("^(output|blk\\.\\d+\\.attn_[qk])\\.weight$=q5_K").unwrap()];
    assert_eq!(found(&args), ["q4_K", "q5_K", "q5_K"]);
    args.output_tensor_type = Some(GgmlType::Q8_0);
    args.token_embedding_type = Some(GgmlType::Q5_1);
    assert_eq!(found(&args), ["q5_1", "q8_0", "q5_K"]);
    args.output_tensor_type = None;
    args.leave_output_tensor = true;
    assert_eq!(found(&args), ["q5_1", "f16", "q5_K"]);
    args.target = Target::Copy;
    let error = args.wishes().unwrap_err().to_string();
    assert_eq!(error, "type copy: options that change types are not allowed");
}

/// Names of the tensors of each file of a set, and the whole read as one model.
fn set(dir: &Path, count: u32) -> (Vec<Vec<String>>, Model) {
    let prefix = dir.join("out");
    let name = SplitName { prefix: prefix.to_str().unwrap(), index: 0, count };
    let names = |i: u32| {
        let gguf =
            ggml_format::Gguf::parse(fs::read(name.sibling(i)).unwrap().into(), u64::MAX >> 1).unwrap();
        assert_eq!(gguf.u16("split.no").unwrap(), i as u16);
        assert_eq!(gguf.u16("split.count").unwrap(), count as u16);
        assert_eq!(gguf.value::<i32>("split.tensors.count").unwrap(), tensors().len() as i32);
        assert_eq!(gguf.contains("a.note"), i == 0);
        gguf.tensors().iter().map(|t| t.name.clone()).collect()
    };
    ((0..count).map(names).collect(), open(Path::new(&name.sibling(0))).unwrap())
}

#[test]
fn sets_of_files_hold_the_same_tensors_as_one_file() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
    let whole = args(dir.path(), FileType::Q8_0);
    run(whole.clone()).unwrap();
    let one = open(&dir.path().join("out.gguf")).unwrap();
    for (args, count) in [
        (Args { split_max_tensors: Some(5), ..whole.clone() }, 3),
        (Args { split_max_size: Some(300_000), ..whole.clone() }, 5),
    ] {
        run(args).unwrap();
        let (files, model) = set(dir.path(), count);
        let names: Vec<&String> = files.iter().flatten().collect();
        assert_eq!(names, one.tensors().iter().map(|t| &t.name).collect::<Vec<_>>());
        for t in one.tensors() {
            let found = model.tensor(&t.name).unwrap();
            assert_eq!((found.ty, bytes_of(&model, found)), (t.ty, bytes_of(&one, t)), "{}", t.name);
        }
    }
    // Copied, a set becomes one file again.
    let joined = dir.path().join("joined.gguf");
    let input = dir.path().join("out-00001-of-00003.gguf");
    run(Args { input, output: joined.clone(), target: Target::Copy, ..whole }).unwrap();
    assert!(fs::read(joined).unwrap() == fs::read(dir.path().join("out.gguf")).unwrap());
}

#[test]
fn a_split_set_can_stay_split() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("in-00001-of-00002.gguf");
    write_model(&first, GgmlType::F16, Some(0));
    write_model(&dir.path().join("in-00002-of-00002.gguf"), GgmlType::F16, Some(1));
    let args = Args { input: first.clone(), keep_split: true, ..args(dir.path(), FileType::Q4_0) };
    run(args.clone()).unwrap();
    let (files, model) = set(dir.path(), 2);
    let input = open(&first).unwrap();
    for (i, names) in files.iter().enumerate() {
        assert_eq!(names.len(), tensors().len() / 2);
        assert!(names.iter().all(|name| usize::from(input.tensor(name).unwrap().shard) == i));
    }
    assert_eq!(model.tensor("blk.1.attn_q.weight").unwrap().ty, GgmlType::Q4_0);
    // Names that would replace the input are found, too.
    let error = run(Args { output: dir.path().join("in"), ..args }).unwrap_err().to_string();
    assert!(error.ends_with("the output must not be an input file"), "{error}");
}

#[test]
fn a_set_that_fails_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut head = GgufWriter::new();
    head.set("general.architecture", "llama").unwrap();
    head.tensor("blk.0.attn_q.weight", &[32, 2], GgmlType::F32).unwrap();
    head.tensor("blk.1.attn_q.weight", &[32, 2], GgmlType::F32).unwrap();
    let mut data = head.begin(Vec::new()).unwrap();
    data.write("blk.0.attn_q.weight", &quantized(GgmlType::F32, &values(64, 0), 32)).unwrap();
    data.write("blk.1.attn_q.weight", &quantized(GgmlType::F32, &[f32::INFINITY; 64], 32)).unwrap();
    fs::write(dir.path().join("in.gguf"), data.finish().unwrap()).unwrap();
    let args = Args { split_max_tensors: Some(1), ..args(dir.path(), FileType::Q8_0) };
    let error = format!("{:#}", run(args).unwrap_err());
    assert!(error.ends_with("row 0, column 0: expected a finite value, found inf"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_set_that_fails_leaves_an_older_one_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.gguf");
    let write = |second: f32| {
        let mut head = GgufWriter::new();
        head.set("general.architecture", "llama").unwrap();
        head.tensor("blk.0.attn_q.weight", &[32, 2], GgmlType::F32).unwrap();
        head.tensor("blk.1.attn_q.weight", &[32, 2], GgmlType::F32).unwrap();
        let mut data = head.begin(Vec::new()).unwrap();
        for (i, x) in [0.5, second].into_iter().enumerate() {
            data.write(&format!("blk.{i}.attn_q.weight"), &quantized(GgmlType::F32, &[x; 64], 32)).unwrap();
        }
        fs::write(&input, data.finish().unwrap()).unwrap();
    };
    let args = Args { split_max_tensors: Some(1), ..args(dir.path(), FileType::Q8_0) };
    write(1.0);
    run(args.clone()).unwrap();
    write(f32::NAN);
    let before = contents(dir.path());
    assert_eq!(before.len(), 3);
    run(args.clone()).unwrap_err();
    assert!(contents(dir.path()) == before);
    // A run that succeeds replaces it.
    write(2.0);
    run(args).unwrap();
    let after = contents(dir.path());
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert_ne!(after["out-00002-of-00002.gguf"], before["out-00002-of-00002.gguf"]);
}

#[test]
fn a_model_of_too_many_layers_is_refused_and_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut head = GgufWriter::new();
    head.set("general.architecture", "llama").unwrap();
    head.set("llama.block_count", u32::MAX).unwrap();
    head.set("llama.attention.head_count", 4u32).unwrap();
    fs::write(dir.path().join("in.gguf"), head.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    let error = format!("{:#}", run(args(dir.path(), FileType::Q8_0)).unwrap_err());
    let expected = "key `llama.attention.head_count`: expected at most 65536 layers that share one value, found 4294967295";
    assert!(error.ends_with(expected) && error.contains("cannot read the configuration"), "{error}");
}

#[test]
fn the_output_type_is_that_of_tied_embeddings() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
    let base = args(dir.path(), FileType::Q4_K_M);
    let found = |args: &Args| type_of(&types(dir.path(), args), "token_embd.weight");
    assert_eq!(found(&base), GgmlType::Q6_K);
    let output = Args { output_tensor_type: Some(GgmlType::Q8_0), ..base.clone() };
    assert_eq!(found(&output), GgmlType::Q8_0);
    // The embeddings' own option comes first, and then nothing is left for the other.
    let both = Args { token_embedding_type: Some(GgmlType::Q5_1), ..output };
    let error = run(both).unwrap_err().to_string();
    let expected = "--output-tensor-type q8_0: no output matrix left to convert";
    assert_eq!(error, expected);
}

#[test]
fn targets_have_names_and_numbers() {
    assert_eq!(parse_target("iq3_xxs"), Ok(Target::Mix(FileType::IQ3_XXS)));
    assert_eq!(parse_target("15"), Ok(Target::Mix(FileType::Q4_K_M)));
    assert_eq!(parse_target("COPY"), Ok(Target::Copy));
    assert!(parse_target("q9").unwrap_err().starts_with("unknown file type (known: f32, "));
    // A tensor type without a file type of that name stands for all matrices in it.
    assert_eq!(parse_target("mxfp4"), Ok(Target::Pure(FileType::MXFP4_MOE)));
    assert_eq!(parse_target("nvfp4"), Ok(Target::Mix(FileType::NVFP4)));
    for t in TYPES {
        assert_eq!(parse_target(t.name).is_ok(), parse_type(t.name).is_ok(), "{}", t.name);
    }
}

#[test]
fn a_type_of_tensors_is_that_of_all_matrices() {
    let dir = tempfile::tempdir().unwrap();
    write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
    run(Args { target: parse_target("MXFP4").unwrap(), ..args(dir.path(), FileType::F16) }).unwrap();
    let model = open(&dir.path().join("out.gguf")).unwrap();
    for t in model.tensors() {
        let expected = if t.ne[1] == 1 { GgmlType::F32 } else { GgmlType::MXFP4 };
        assert_eq!(t.ty, expected, "{}", t.name);
    }
    assert_eq!(model.metadata().u32("general.file_type").unwrap(), FileType::MXFP4_MOE.id());
}
