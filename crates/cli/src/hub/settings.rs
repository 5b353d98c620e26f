//! Settings of the hub: options, then the environment as huggingface_hub, llama.cpp and ollama read it.

use std::path::{Path, PathBuf};

use chaski_hub::{HubConfig, Proxies, Roots, Token};

use super::args::{HubArgs, RootsWord};

/// The environment, for tests a made one.
pub(super) struct Environment<'e> {
    /// A variable; an empty one is none.
    pub(super) variable: &'e dyn Fn(&str) -> Option<String>,
    pub(super) home: Option<PathBuf>,
    /// Folder for files of addresses.
    pub(super) address_cache: PathBuf,
}

impl Environment<'_> {
    fn get(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| (self.variable)(name).filter(|value| !value.is_empty()))
    }

    fn path(&self, names: &[&str]) -> Option<PathBuf> {
        self.get(names).map(|path| self.expanded(&path))
    }

    /// `~/` is the user's folder, as for other programs that read these variables.
    fn expanded(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => path.into(),
        }
    }

    fn is_on(&self, names: &[&str]) -> bool {
        let is_yes = |value: String| ["1", "on", "yes", "true"].contains(&value.to_lowercase().as_str());
        names.iter().any(|name| (self.variable)(name).is_some_and(is_yes))
    }

    /// Folder of Hugging Face's programs.
    fn hf_home(&self) -> PathBuf {
        let cache =
            || self.path(&["XDG_CACHE_HOME"]).or_else(|| self.home.as_ref().map(|home| home.join(".cache")));
        self.path(&["HF_HOME"])
            .unwrap_or_else(|| cache().unwrap_or_else(std::env::temp_dir).join("huggingface"))
    }

    /// A token that is sent without being asked for.
    fn implicit_token(&self) -> Option<Token> {
        if self.is_on(&["HF_HUB_DISABLE_IMPLICIT_TOKEN"]) {
            return None;
        }
        if let Some(token) = self.get(&["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]) {
            return Token::new(&token);
        }
        let path = self.path(&["HF_TOKEN_PATH"]).unwrap_or_else(|| self.hf_home().join("token"));
        Token::new(&std::fs::read_to_string(path).ok()?)
    }

    fn proxies(&self) -> Proxies {
        let all = self.get(&["ALL_PROXY", "all_proxy"]);
        Proxies {
            https: self.get(&["HTTPS_PROXY", "https_proxy"]).or_else(|| all.clone()),
            http: self.get(&["HTTP_PROXY", "http_proxy"]).or(all),
            none_for: self.get(&["NO_PROXY", "no_proxy"]).unwrap_or_default(),
        }
    }
}

/// The settings of a command line in an environment.
pub(super) fn settings(args: &HubArgs, environment: &Environment<'_>) -> HubConfig {
    let env = environment;
    let cache = env.path(&["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE"]);
    let mut config = HubConfig::new(cache.unwrap_or_else(|| env.hf_home().join("hub")));
    if let Some(endpoint) = env.get(&["HF_ENDPOINT", "MODEL_ENDPOINT"]) {
        config.endpoint = endpoint;
    }
    config.address_cache = env.address_cache.clone();
    let in_home = |path: &str| env.home.as_ref().map(|home| home.join(path));
    let ollama = [env.path(&["OLLAMA_MODELS"]), in_home(".ollama/models")].into_iter().flatten();
    config.ollama = ollama.chain([PathBuf::from("/usr/share/ollama/.ollama/models")]).collect();
    config.lm_studio =
        [".lmstudio/models", ".cache/lm-studio/models"].into_iter().filter_map(in_home).collect();
    config.token = match &args.hf_token {
        Some(token) => Token::new(token),
        None => env.implicit_token(),
    };
    config.offline = args.offline || env.is_on(&["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]);
    config.proxies = env.proxies();
    config.roots = match args.tls_roots {
        Some(RootsWord::System) => Roots::Platform,
        Some(RootsWord::BuiltIn) => Roots::BuiltIn,
        None if env.get(&["SSL_CERT_FILE", "SSL_CERT_DIR"]).is_some() => Roots::Platform,
        None => Roots::BuiltIn,
    };
    config
}

/// The settings of this process.
pub(super) fn of_process(args: &HubArgs) -> HubConfig {
    let home = directories::UserDirs::new().map(|dirs| dirs.home_dir().to_owned());
    let address_cache =
        crate::cache::folder("models").unwrap_or_else(|| std::env::temp_dir().join("chaski-models"));
    settings(args, &Environment { variable: &|name| std::env::var(name).ok(), home, address_cache })
}

/// A path with `~/` for the user's folder, for messages.
pub(super) fn shown(path: &Path) -> String {
    let home = directories::UserDirs::new().map(|dirs| dirs.home_dir().to_owned());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)], args: &HubArgs) -> HubConfig {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        let environment = Environment {
            variable: &variable,
            home: Some("/home/me".into()),
            address_cache: "/cache/models".into(),
        };
        settings(args, &environment)
    }

    #[test]
    fn the_cache_is_where_other_programs_have_it() {
        for (variables, cache) in [
            (&[][..], "/home/me/.cache/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x"), ("HF_HOME", "~/h")], "/home/me/h/hub"),
            (&[("HF_HOME", "/h"), ("LLAMA_CACHE", "/l")], "/l"),
            (&[("LLAMA_CACHE", "/l"), ("HUGGINGFACE_HUB_CACHE", "/g")], "/g"),
            (&[("HUGGINGFACE_HUB_CACHE", "/g"), ("HF_HUB_CACHE", "/c")], "/c"),
            (&[("HF_HUB_CACHE", ""), ("HF_HOME", "/h")], "/h/hub"),
        ] {
            assert_eq!(of(variables, &HubArgs::default()).cache, Path::new(cache), "{variables:?}");
        }
    }

    #[test]
    fn tokens_come_from_the_option_a_variable_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let home = ("HF_HOME", folder.path().to_str().unwrap());
        let args = HubArgs::default();
        assert_eq!(of(&[home], &args).token, Token::new("hf_file"));
        assert_eq!(of(&[home, ("HF_TOKEN", " hf_env ")], &args).token, Token::new("hf_env"));
        let named = HubArgs { hf_token: Some("hf_own".into()), ..args.clone() };
        assert_eq!(of(&[home, ("HF_TOKEN", "hf_env")], &named).token, Token::new("hf_own"));
        let disabled = [home, ("HF_TOKEN", "hf_env"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")];
        assert_eq!(of(&disabled, &args).token, None);
        assert_eq!(of(&disabled, &named).token, Token::new("hf_own"));
    }

    #[test]
    fn mirrors_proxies_and_the_absence_of_a_network() {
        let args = HubArgs::default();
        let plain = of(&[], &args);
        assert!(
            !plain.offline && plain.endpoint == "https://huggingface.co" && plain.roots == Roots::BuiltIn
        );
        assert_eq!(of(&[("MODEL_ENDPOINT", "a"), ("HF_ENDPOINT", "b")], &args).endpoint, "b");
        assert!(
            of(&[("HF_HUB_OFFLINE", "Yes")], &args).offline && !of(&[("HF_HUB_OFFLINE", "0")], &args).offline
        );
        assert!(of(&[("TRANSFORMERS_OFFLINE", "1")], &args).offline);
        assert!(of(&[], &HubArgs { offline: true, ..args.clone() }).offline);
        let proxies =
            of(&[("all_proxy", "socks5://p:1"), ("http_proxy", "http://q:2"), ("no_proxy", "a,b")], &args)
                .proxies;
        assert_eq!(proxies.https.as_deref(), Some("socks5://p:1"));
        assert_eq!((proxies.http.as_deref(), proxies.none_for.as_str()), (Some("http://q:2"), "a,b"));
        assert_eq!(of(&[("SSL_CERT_FILE", "/roots.pem")], &args).roots, Roots::Platform);
        let built_in = HubArgs { tls_roots: Some(RootsWord::BuiltIn), ..args };
        assert_eq!(of(&[("SSL_CERT_FILE", "/roots.pem")], &built_in).roots, Roots::BuiltIn);
    }
}
