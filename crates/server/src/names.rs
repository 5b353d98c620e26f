//! Names of models, and of their LoRAs, which are models for requests.

/// The name of a file without its folder and ending, and without the number of a part of several.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".gguf").unwrap_or(name);
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = name.rsplit_once("-of-").and_then(|(rest, n)| Some((rest.rsplit_once('-')?, n)));
    match part {
        Some(((name, i), n)) if is_number(i) && is_number(n) => name,
        _ => name,
    }
}

/// True if a name is one of these, also with the tag that ollama adds to names without one.
pub(crate) fn is_called(id: &str, aliases: &[String], name: &str) -> bool {
    let is_it = |name: &str| id == name || aliases.iter().any(|alias| alias == name);
    is_it(name) || name.strip_suffix(":latest").is_some_and(is_it)
}

/// The LoRA that a model's name means, of those with these names: `id:lora` or `lora`, also with ollama's tag. Of
/// several with one name it is the first.
pub(crate) fn lora_called<'l>(
    id: &str,
    aliases: &[String],
    loras: impl Iterator<Item = &'l str> + Clone,
    name: &str,
) -> Option<usize> {
    let find = |name: &str| loras.clone().position(|lora| lora == name);
    let of_model = |name: &str| {
        let after = |id: &str| name.strip_prefix(id).and_then(|rest| rest.strip_prefix(':'));
        let rest = after(id).or_else(|| aliases.iter().find_map(|alias| after(alias)));
        rest.and_then(find).or_else(|| find(name))
    };
    of_model(name).or_else(|| name.strip_suffix(":latest").and_then(of_model))
}
