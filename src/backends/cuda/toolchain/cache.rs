//! Compiled kernels by content hash, in the user's cache folder.
//!
//! Invariant: a damaged, truncated or foreign file is a miss, never a wrong kernel; several processes may share the
//! folder (files are written under another name and renamed); its size is bounded, and the least recently used files
//! are removed first. Losing the cache only costs time, so no error leaves this module.

use crate::backends::cuda::variant::spec::Kernel;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The stored result of a compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The compiler's log.
    pub log: String,
}

/// A folder of cubins.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit_bytes: u64,
}

/// One cached kernel, for `maskloom kernels list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The key.
    pub key: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
}

const MAGIC: &[u8; 8] = b"mlkern01";
const HEADER: usize = 8 + 32 + 8;
const SUFFIX: &str = "mlk";

impl Cache {
    /// Bound of the user's cache.
    pub const DEFAULT_LIMIT: u64 = 256 << 20;

    /// The user's cache: `MASKLOOM_CACHE`, or the system's cache folder. None if the system has none.
    pub fn user() -> Option<Cache> {
        let own = std::env::var_os("MASKLOOM_CACHE").filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder =
            own.or_else(|| Some(directories::ProjectDirs::from("", "", "maskloom")?.cache_dir().to_path_buf()))?;
        Some(Cache::at(folder.join("kernels"), Self::DEFAULT_LIMIT))
    }

    /// A cache in `folder`, kept within `limit_bytes`.
    pub fn at(folder: PathBuf, limit_bytes: u64) -> Cache {
        Cache { folder, limit_bytes }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{SUFFIX}"))
    }

    /// Whether there is a file for a key; it may yet prove damaged.
    pub fn has(&self, key: &str) -> bool {
        self.path(key).is_file()
    }

    /// The entry of a key, if it is there and whole.
    pub fn get(&self, key: &str) -> Option<Entry> {
        let path = self.path(key);
        let bytes = std::fs::read(&path).ok()?;
        let entry = decode(key, &bytes);
        if entry.is_none() {
            let _ = std::fs::remove_file(&path);
        } else if let Ok(file) = std::fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        entry
    }

    /// Keeps an entry, then drops the least recently used above the bound.
    pub fn put(&self, key: &str, entry: &Entry) {
        let _ = self.try_put(key, entry);
        self.evict();
    }

    fn try_put(&self, key: &str, entry: &Entry) -> std::io::Result<()> {
        use std::io::Write;
        std::fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix(".writing-").tempfile_in(&self.folder)?;
        file.write_all(&encode(key, entry))?;
        file.persist(self.path(key)).map_err(|e| e.error)?;
        Ok(())
    }

    /// Every kernel, most recently used first; none where there is no folder yet. Errors: it cannot be listed.
    pub fn list(&self) -> std::io::Result<Vec<Listed>> {
        let files = match std::fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let mut found: Vec<Listed> = files.iter().filter_map(|f| listed(&f.path())).collect();
        found.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.key.cmp(&b.key)));
        Ok(found)
    }

    /// Which kernel an entry is and for what: `flex_sm80 for sm_80`, from its log. Does not count as a use.
    pub fn about(&self, key: &str) -> Option<String> {
        let entry = decode(key, &std::fs::read(self.path(key)).ok()?)?;
        let entries = entry.log.split("Compiling entry function '").skip(1).filter_map(|rest| {
            let mut quoted = rest.split('\'');
            Some((quoted.next()?, quoted.nth(1)?))
        });
        // a helper kernel may have been compiled first
        let helps = |name: &str| Kernel::ALL.iter().all(|kernel| kernel.entry() != name);
        let (name, arch) = entries.min_by_key(|(name, _)| helps(name))?;
        Some(format!("{name} for {arch}"))
    }

    /// Removes every kernel; how many. Errors: the folder cannot be listed, or the first one that cannot be removed.
    pub fn clear(&self) -> std::io::Result<usize> {
        let all = self.list()?;
        all.iter().try_for_each(|k| std::fs::remove_file(self.path(&k.key)))?;
        Ok(all.len())
    }

    fn evict(&self) {
        let mut total = 0;
        // a folder that cannot be listed has had its error when it was written into
        for kernel in self.list().unwrap_or_default() {
            total += kernel.bytes;
            if total > self.limit_bytes {
                let _ = std::fs::remove_file(self.path(&kernel.key));
            }
        }
    }
}

fn listed(path: &Path) -> Option<Listed> {
    if path.extension()? != SUFFIX {
        return None;
    }
    let about = std::fs::metadata(path).ok()?;
    let key = path.file_stem()?.to_string_lossy().into_owned();
    Some(Listed { key, bytes: about.len(), used: about.modified().ok()? })
}

/// Magic, checksum over key and body, length of the log, log, cubin.
fn encode(key: &str, entry: &Entry) -> Vec<u8> {
    let mut body = (entry.log.len() as u64).to_le_bytes().to_vec();
    body.extend(entry.log.as_bytes());
    body.extend(&entry.cubin);
    [MAGIC.as_slice(), checksum(key, &body).as_slice(), &body].concat()
}

fn decode(key: &str, bytes: &[u8]) -> Option<Entry> {
    if bytes.len() < HEADER || &bytes[..8] != MAGIC {
        return None;
    }
    let (sum, body) = bytes[8..].split_at(32);
    if sum != checksum(key, body) {
        return None;
    }
    let (length, rest) = body.split_at(8);
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let (log, cubin) = rest.split_at_checked(length)?;
    Some(Entry { cubin: cubin.to_vec(), log: String::from_utf8(log.to_vec()).ok()? })
}

fn checksum(key: &str, body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(body);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::toolchain::cache::*;

    fn entry(size: usize, fill: u8) -> Entry {
        Entry { cubin: vec![fill; size], log: format!("log {fill}") }
    }

    #[test]
    fn what_is_put_is_got_and_damage_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("k"), 1 << 20);
        assert_eq!(cache.get("aa"), None);
        cache.put("aa", &entry(100, 7));
        assert_eq!(cache.get("aa"), Some(entry(100, 7)));
        let path = cache.path("aa");
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 7, 40, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(cache.get("aa"), None, "cut at {cut}");
        }
        for at in [0, 9, 41, 60, whole.len() - 1] {
            let mut bad = whole.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(cache.get("aa"), None, "flipped at {at}");
        }
        // another key's file under this name
        std::fs::write(&path, encode("bb", &entry(3, 1))).unwrap();
        assert_eq!(cache.get("aa"), None);
    }

    #[test]
    fn an_entry_says_which_kernel_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_path_buf(), 1 << 20);
        let line = |name: &str| format!("ptxas info    : Compiling entry function '{name}' for 'sm_80'\n");
        let log = line("decode_join") + &line("decode_forward");
        cache.put("aa", &Entry { cubin: vec![1], log });
        cache.put("bb", &entry(1, 1));
        assert_eq!(cache.about("aa").as_deref(), Some("decode_forward for sm_80"));
        assert_eq!((cache.about("bb"), cache.about("cc")), (None, None));
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_path_buf(), 2600);
        for (age, key) in [(30, "a"), (20, "b")] {
            cache.put(key, &entry(1000, 1));
            let file = std::fs::File::options().append(true).open(cache.path(key)).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        assert!(cache.get("a").is_some()); // now younger than b
        cache.put("c", &entry(1000, 3));
        let mut keys: Vec<_> = cache.list().unwrap().into_iter().map(|l| l.key).collect();
        keys.sort();
        assert_eq!(keys, ["a", "c"]);
        assert_eq!(cache.clear().expect("a folder"), 2);
    }

    #[test]
    fn many_writers_and_readers_never_see_half_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_path_buf(), 1 << 30);
        let work = |seed: u8| {
            for round in 0..40u8 {
                cache.put("same", &entry(5000, seed.wrapping_add(round)));
                let got = cache.get("same").expect("a whole file is always there");
                assert!(got.cubin.iter().all(|b| *b == got.cubin[0]));
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|t| drop(scope.spawn(move || work(t * 50)))));
        assert_eq!(cache.list().unwrap().len(), 1);
    }
}
