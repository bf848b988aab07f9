//! The kernel bundle: the flex kernel of a problem as files (text, cubins, block lists, launch parameters), with the Python
//! that launches it inside PyTorch.
//!
//! Invariant: `launch.json` names each value that Python fills in at a launch with its type, in the struct's order;
//! Python contains nothing of the layout. Must not know folders or devices.

mod backward;

use crate::backends::cuda::emit::layout::capture_bytes;
use crate::backends::cuda::launch::backward::BackwardParams;
use crate::backends::cuda::launch::decode::{JOIN_ENTRY, JOIN_THREADS};
use crate::backends::cuda::launch::params::{Decode, Hopper, Params};
use crate::backends::cuda::lists;
use crate::backends::cuda::lists::decode_plan::{self, Cut};
use crate::backends::cuda::lists::kept::Kept;
use crate::backends::cuda::lists::of_problem;
use crate::backends::cuda::lists::pieces::{self, Units};
use crate::backends::cuda::lists::plan::Plan;
use crate::backends::cuda::toolchain::cache::Cache;
use crate::backends::cuda::toolchain::compile::{self, Compiler, Program};
use crate::backends::cuda::variant::bound;
use crate::backends::cuda::variant::limits::Limits;
use crate::backends::cuda::variant::spec::{Copies, Kernel, KernelSpec, ScoreKind};
use crate::base::tensor::Data;
use crate::base::{BackendName, Control, Diagnostic, ExportFile, ExportKind, HostTensor, identity, tensor_file};
use crate::ir::graph::{Input, Mod, NodeId, Op};
use crate::problem::Problem;
use serde_json::{Value, json};

/// Architectures that run on everything from Ampere to Hopper at full speed.
pub const USUAL_ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90a"];

const OPERATORS: &str = include_str!("../../../../assets/python/kernel_bundle.py");
const LAUNCHER: &str = include_str!("../../../../assets/python/kernel_launch.py");
const PLANS: &str = include_str!("../../../../assets/python/kernel_plans.py");

/// `STEM_kernel.py` and the files by which it launches.
pub fn loader(stem: &str) -> [ExportFile; 3] {
    let what = "Maskloom's kernel as a PyTorch operator, loaded by the driver alone: attend(q, k, v)";
    let operators =
        ExportFile::new(ExportKind::Kernel, format!("{stem}_kernel.py"), OPERATORS.replace("DESIGN", stem), what);
    let launcher = ExportFile::new(
        ExportKind::Kernel,
        "kernels/launch.py",
        LAUNCHER.replace("DESIGN", stem),
        "launches the kernels",
    );
    [
        operators,
        launcher,
        ExportFile::new(ExportKind::Kernel, "kernels/plans.py", PLANS, "the parameters of launches, and the driver"),
    ]
}

/// What a bundle is asked for.
#[derive(Clone, Copy, Debug)]
pub struct BundleRequest<'a> {
    /// The name of the module beside it.
    pub stem: &'a str,
    /// The captured tensors with their names in that module.
    pub names: &'a [(String, HostTensor)],
    /// Compute capabilities, such as `sm_90a`: one variant for each.
    pub archs: &'a [&'a str],
    /// Whether gradients are added in a fixed order.
    pub deterministic: bool,
}

/// `STEM_kernel.py`, and below `kernels/` the kernels that it launches. Errors: the backend's refusal, an architecture without a
/// kernel, the compiler's message.
pub fn kernel_bundle(
    problem: &Problem,
    request: BundleRequest,
    compiler: &dyn Compiler,
    cache: Option<&Cache>,
) -> Result<Vec<ExportFile>, Diagnostic> {
    let BundleRequest { stem, names, archs, deterministic } = request;
    // the loader hands out the output and the lse
    let problem = &problem.without_aux();
    let mut files = loader(stem).to_vec();
    let (mut variants, mut tensors) = (Vec::new(), Vec::new());
    let mut named = Vec::new();
    for arch in archs {
        let (limits, arch) = Limits::named(arch)?;
        if !named.iter().any(|(_, name)| *name == arch) {
            named.push((limits, arch));
        }
    }
    for place in &named {
        let (limits, arch) = place;
        let program = compile::program(problem, BackendName::Flex, limits, arch, compiler, cache)?;
        let name = format!("{}.{arch}", program.spec.kernel.name());
        let text = program.artefact.source.as_str();
        files.push(ExportFile::new(
            ExportKind::Kernel,
            format!("kernels/{name}.cu"),
            text,
            "the kernel's complete text, without includes",
        ));
        let what = format!("machine code for {arch}, made by {}", compiler.version());
        files.push(ExportFile::new(ExportKind::Kernel, format!("kernels/{name}.cubin"), program.cubin.clone(), what));
        let mut made = variant(problem, &program, place, &name, &mut tensors)?;
        made["backward"] =
            backward::variant(problem, deterministic, (limits, arch), (compiler, cache), &mut files, &mut tensors)?;
        variants.push(made);
    }
    let p = problem.spec();
    let launch = json!({
        "maskloom": identity::build(),
        "compiler": compiler.version(),
        "problem": {
            "batch": p.batch, "heads": p.heads, "kv_heads": p.kv_heads, "q_len": p.q_len, "kv_len": p.kv_len,
            "head_dim": p.head_dim, "head_dim_v": p.head_dim_v, "dtype": p.dtype.torch_name(), "scale": problem.scale(),
            "mask_per_batch": problem.mask_per_batch(), "score_per_batch": problem.score.as_deref().is_some_and(reads_by_batch),
        },
        "params": Params::layout(),
        "hopper": Hopper::layout(),
        "decode": Decode::layout(),
        "backward": BackwardParams::layout(),
        "learns": backward::reported(problem, names),
        "deterministic": deterministic,
        "variants": variants,
    });
    files.push(ExportFile::new(
        ExportKind::Kernel,
        "kernels/launch.json",
        format!("{launch:#}\n"),
        "launch parameters of every variant",
    ));
    let what = "block lists, bitmaps and captured tensors of every variant";
    files.push(tensor_file(ExportKind::Kernel, "kernels/tensors.safetensors".into(), &tensors, what)?);
    Ok(files)
}

/// Whether a captured tensor is read at an index that follows the batch entry. Entries beyond the design's would read the last one's.
fn reads_by_batch(score: &Mod) -> bool {
    let depends = score.graph.depends();
    let by_batch = |id: &NodeId| depends[id.0 as usize].on(Input::B);
    score.graph.nodes().iter().any(|node| matches!(&node.op, Op::Load(_, index) if index.iter().any(by_batch)))
}

/// Batches with chosen units, in addition to the design's own.
const SCHEDULED_BATCHES: [usize; 3] = [1, 2, 4];

/// The data that a variant's launch reads, other than its input tensors.
struct Lists {
    plan: Plan,
    /// The kept cells of partial tiles, if the mask is passed as data.
    kept: Option<Kept>,
    /// How tiles are taken, by batch.
    units: Vec<(usize, Units)>,
    /// Null unless it decodes.
    decode: Value,
}

impl Lists {
    /// Keys of decoding, and the last tiles of Hopper's kernel, are cut, and heads put in sections, for as many multiprocessors as
    /// cards of the architecture usually have. Any other number computes the same; there, and with another batch, the loader
    /// launches whole tiles in the usual sections.
    fn new(problem: &Problem, spec: &KernelSpec, limits: &Limits) -> Result<Lists, Diagnostic> {
        let whole = |plan, kept| Lists { plan, kept, units: Vec::new(), decode: Value::Null };
        if spec.kernel == Kernel::DecodeSm80 {
            let cut = Cut::new(problem, spec, spec.at_once(limits))?;
            let extra = Decode::of(problem, &cut);
            let decode = json!({
                "kv_heads": extra.kv_heads, "rows": extra.rows, "row_tiles": extra.row_tiles, "splits": extra.splits,
                "parts_a_row": cut.parts(), "part_width": decode_plan::part_width(problem),
                "join_entry": JOIN_ENTRY, "join_threads": JOIN_THREADS,
            });
            return Ok(Lists { decode, ..whole(cut.plan, cut.bits.map(Kept::Bits)) });
        }
        let plan = of_problem::plan(problem, spec, &Control::new())?;
        let kept = of_problem::kept(problem, spec, &plan);
        let mut lists = whole(plan, kept);
        let others = SCHEDULED_BATCHES.into_iter().filter(|batch| *batch != problem.batch && !problem.mask_per_batch());
        std::iter::once(problem.batch).chain(others).for_each(|batch| lists.schedule(problem, spec, limits, batch));
        Ok(lists)
    }

    /// Adds the units of a launch with that many batch entries.
    fn schedule(&mut self, problem: &Problem, spec: &KernelSpec, limits: &Limits, batch: usize) {
        let units = of_problem::units(limits, problem, batch, spec, &mut self.plan, self.kept.as_mut());
        self.units.push((batch, units));
    }
}

/// The loader's data about a batch's units.
fn unit_facts(spec: &KernelSpec, limits: &Limits, (batch, units): &(usize, Units)) -> Value {
    let Units { section, pieces, whole } = units;
    json!({
        "batch": batch, "multiprocessors": limits.multiprocessors, "section": section, "whole": whole,
        "pieces": pieces.len(), "part_bytes": pieces::part_bytes(spec), "arrivals": pieces.len() * spec.consumers(),
    })
}

/// One variant's launch, and its tensors under unique names.
fn variant(
    problem: &Problem,
    program: &Program,
    (limits, arch): &(Limits, String),
    name: &str,
    tensors: &mut Vec<(String, HostTensor)>,
) -> Result<Value, Diagnostic> {
    let spec = &program.spec;
    let Lists { plan, kept, units, decode } = Lists::new(problem, spec, limits)?;
    let mut keep = |what: &str, data| tensors.push((format!("{arch}.{what}"), HostTensor::vector(data)));
    keep("tile_order", words(&plan.tile_order));
    keep("row_start", words(&plan.row_start));
    keep("runs", words(plan.runs.as_flattened()));
    if spec.kernel.is_persistent() {
        keep("kv_num_tiles", words(&plan.kv_num_tiles()));
    }
    for (batch, units) in units.iter().filter(|(_, units)| !units.pieces.is_empty()) {
        keep(&format!("pieces{batch}"), words(&lists::words::words(&units.pieces)));
    }
    if let Some(kept) = &kept {
        for (name, array) in ["bitmap_start", "bitmap_ids", "bitmaps"].into_iter().zip(kept.arrays()) {
            keep(name, words(array));
        }
    }
    let captured = program.mods.captures();
    for (at, (name, tensor)) in captured.iter().enumerate() {
        keep(&format!("capture{at}"), Data::U8(capture_bytes(name, tensor)?));
    }
    let values: Vec<_> = captured.iter().map(|(_, tensor)| *tensor).collect();
    let layout = &program.emitted.layout;
    // addresses come first; the loader writes them
    let mods = layout.fill(&vec![0; values.len()], &values, &program.mods.ints, &program.mods.floats);
    keep("mods", Data::U8(mods));
    Ok(json!({
        "arch": arch,
        "kernel": spec.kernel.name(),
        "entry": spec.kernel.entry(),
        "cubin": format!("{name}.cubin"),
        "source": format!("{name}.cu"),
        "threads": spec.threads(), "min_blocks": spec.min_blocks,
        "shared_bytes": spec.shared_bytes(),
        "registers": program.artefact.registers,
        "tile_q": spec.tile_q,
        "tile_kv": spec.tile_kv,
        "stored_rows": backends::cuda::launch::hopper::STORED_ROWS,
        "tensor_maps": spec.kernel.copies() == Copies::Tensors,
        "decode": decode,
        "units": units.iter().map(|units| unit_facts(spec, limits, units)).collect::<Vec<_>>(),
        "positive_scale": folds(spec),
        "lowest": bound::lowest(problem).unwrap_or_default(),
        "q_tiles": plan.q_tiles,
        "mask_batch": plan.batch,
        "mask_heads": plan.heads,
        "captures": backward::places(problem, &captured),
        "bounded": spec.bounded,
        "mods_by_pointer": layout.by_pointer(),
    }))
}

fn folds(spec: &KernelSpec) -> bool {
    spec.score == ScoreKind::Folded
}

/// 32-bit words with their bits kept.
fn words(values: &[u32]) -> Data {
    Data::I32(values.iter().map(|w| *w as i32).collect())
}

#[cfg(test)]
mod tests {
    use crate::backends::cuda::bundle::*;
    use crate::backends::cuda::choose::tests::{make, problem, window};
    use crate::ir::graph::{BinaryOp, CaptureId, ModKind};

    /// Gives back the text as machine code.
    struct Echo;

    impl Compiler for Echo {
        fn version(&self) -> String {
            "echo 1".into()
        }

        fn compile(&self, source: &str, arch: &str, _: compile::Form) -> Result<compile::Compiled, Diagnostic> {
            let cubin = format!("{arch}\n{source}").into_bytes();
            Ok(compile::Compiled { cubin, ..Default::default() })
        }
    }

    fn bundled(problem: &Problem, archs: &[&str], deterministic: bool) -> Result<Vec<ExportFile>, Diagnostic> {
        kernel_bundle(problem, BundleRequest { stem: "mine", names: &[], archs, deterministic }, &Echo, None)
    }

    fn bytes_of<'a>(files: &'a [ExportFile], name: &str) -> &'a [u8] {
        &files.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no {name}")).bytes
    }

    fn launch_of(files: &[ExportFile]) -> Value {
        serde_json::from_slice(bytes_of(files, "kernels/launch.json")).expect("JSON")
    }

    #[test]
    fn every_variant_has_its_text_code_lists_and_launch() {
        let problem = problem(Some(window()), None);
        let files = bundled(&problem, &USUAL_ARCHITECTURES, false).expect("made");
        let names: Vec<_> = files.iter().map(|f| f.name.as_str()).collect();
        let want = [
            "mine_kernel.py",
            "kernels/launch.py",
            "kernels/plans.py",
            "kernels/flex_sm80.sm_80.cu",
            "kernels/flex_sm80.sm_80.cubin",
            "kernels/backward_ampere.sm_80.cu",
            "kernels/backward_ampere.sm_80.cubin",
            "kernels/backward_rows.sm_80.cu",
            "kernels/backward_rows.sm_80.cubin",
            "kernels/flex_sm90.sm_90a.cu",
            "kernels/flex_sm90.sm_90a.cubin",
            "kernels/backward_hopper.sm_90a.cu",
            "kernels/backward_hopper.sm_90a.cubin",
            "kernels/backward_rows.sm_90a.cu",
            "kernels/backward_rows.sm_90a.cubin",
            "kernels/launch.json",
            "kernels/tensors.safetensors",
        ];
        assert_eq!(names, want);
        let launch = launch_of(&files);
        assert_eq!(launch["params"][0], json!(["q", "u64"]));
        assert_eq!(launch["hopper"][2], json!(["pieces", "u64"]));
        let hopper = &launch["variants"][1];
        assert_eq!((hopper["tensor_maps"].as_bool(), hopper["entry"].as_str()), (Some(true), Some("flex_hopper")));
        let tensors =
            safetensors::SafeTensors::deserialize(bytes_of(&files, "kernels/tensors.safetensors")).expect("tensors");
        let rows = launch["variants"][0]["q_tiles"].as_u64().expect("a number") as usize;
        assert_eq!(tensors.tensor("sm_80.row_start").expect("there").shape(), [rows + 1]);
        assert!(tensors.tensor("sm_90a.bitmaps").is_ok() && tensors.tensor("sm_80.mods").is_ok());
        assert_eq!(
            tensors.tensor("sm_90a.kv_num_tiles").expect("there").shape(),
            [hopper["q_tiles"].as_u64().unwrap() as usize]
        );
        // PyTorch 2.5 infers no schema from annotations of newer Python
        let operators = String::from_utf8_lossy(&files[0].bytes);
        assert_eq!(operators.matches("custom_op(").count(), operators.matches("schema=").count());
        assert!(files[..3].iter().all(|file| !String::from_utf8_lossy(&file.bytes).contains("DESIGN")));
    }

    #[test]
    fn gradients_in_a_fixed_order_take_their_lists_and_bins_along() {
        let order = |files: &[ExportFile]| {
            let tensors = safetensors::SafeTensors::deserialize(bytes_of(files, "kernels/tensors.safetensors"));
            let words = tensors.expect("tensors").tensor("sm_90a.backward_order").expect("there").data().to_vec();
            (launch_of(files)["deterministic"] == json!(true), words.iter().any(|b| *b != 0))
        };
        let design = problem(Some(window()), None);
        for deterministic in [false, true] {
            let files = bundled(&design, &["sm_90a"], deterministic).expect("made");
            assert_eq!(order(&files), (deterministic, deterministic));
        }
        let learns = make(ModKind::Score, |g| {
            let bias = g.add_capture("key", HostTensor::vector(Data::F32(vec![0.5; 8])));
            let (h, score) = (g.input(Input::H), g.input(Input::Score));
            let bias = g.add(Op::Load(bias, smallvec::smallvec![h]), None);
            g.binary(BinaryOp::Add, score, bias)
        });
        let learns = problem(Some(window()), Some(learns));
        let free = bundled(&learns, &["sm_90a"], false).expect("made");
        assert_eq!(launch_of(&free)["problem"]["score_per_batch"], json!(false), "it reads by head");
        // the name in the module, which reserves `key` for a parameter of its attend
        let named =
            [("key_1".to_string(), learns.score.as_deref().expect("a mod").graph.capture(CaptureId(0)).tensor.clone())];
        let request = BundleRequest { stem: "mine", names: &named, archs: &["sm_90a"], deterministic: false };
        let in_module = kernel_bundle(&learns, request, &Echo, None).expect("made");
        assert_eq!(
            (&launch_of(&free)["learns"][0]["name"], &launch_of(&in_module)["learns"][0]["name"]),
            (&json!("key"), &json!("key_1"))
        );
        let bins = |files: &[ExportFile]| launch_of(files)["variants"][0]["backward"]["bins"].clone();
        let ordered = bundled(&learns, &["sm_90a"], true).expect("made");
        assert_eq!((bins(&free), bins(&ordered)), (Value::Null, json!([256])));
        let afterwards = |files: &[ExportFile]| {
            String::from_utf8_lossy(bytes_of(files, "kernels/backward_rows.sm_90a.cu")).contains("backward_captured(")
        };
        assert!(afterwards(&ordered) && !afterwards(&free));
    }

    #[test]
    fn an_architecture_named_twice_is_one_variant() {
        let problem = problem(Some(window()), None);
        let files = bundled(&problem, &["sm_90", "sm_90a"], false).expect("made");
        let cubins: Vec<_> = files.iter().map(|f| f.name.as_str()).filter(|name| name.ends_with(".cubin")).collect();
        let want = ["flex_sm90", "backward_hopper", "backward_rows"].map(|n| format!("kernels/{n}.sm_90a.cubin"));
        assert_eq!(cubins, want);
    }

    #[test]
    fn draws_go_along_for_usual_batches() {
        let plain = crate::problem::ProblemSpec::plain;
        let bundle = |batch: usize, heads: usize| {
            let problem = Problem::new(plain(batch, (heads, heads), (2048, 2048), 128)).expect("valid");
            let files = bundled(&problem, &["sm_90a"], false).expect("made");
            let launch = launch_of(&files);
            let tensors = safetensors::SafeTensors::deserialize(bytes_of(&files, "kernels/tensors.safetensors"))
                .expect("tensors");
            let number = |units: &Value, name: &str| units[name].as_u64().expect(name) as usize;
            let rows = tensors.tensor("sm_90a.row_start").expect("there").shape()[0] - 1;
            let all = launch["variants"][0]["units"].as_array().expect("a list").clone();
            let of = |units: &Value| {
                let (batch, pieces) = (number(units, "batch"), number(units, "pieces"));
                let sizes = ["multiprocessors", "arrivals", "part_bytes"].map(|name| number(units, name));
                assert_eq!(sizes, [132, 2 * pieces, (128 * 128 + 4 * 256) * 4]);
                // 1 MB of keys and values a head, 50 MB of cache
                assert!([batch * heads, 25, 22, 17].contains(&number(units, "section")), "{units}");
                let Ok(list) = tensors.tensor(&format!("sm_90a.pieces{batch}")) else {
                    assert_eq!((pieces, number(units, "whole")), (0, batch * heads * 16));
                    return (batch, false);
                };
                assert_eq!(list.shape(), [5 * pieces]);
                let word = |at: usize| i32::from_le_bytes(list.data()[4 * at..][..4].try_into().unwrap());
                assert!((0..pieces).all(|piece| (16..rows as i32).contains(&word(5 * piece + 1))));
                // every tile is whole or the first piece of one
                let begun = (0..pieces).filter(|piece| word(5 * piece + 2) == word(5 * piece + 3)).count();
                assert_eq!(number(units, "whole") + begun, batch * heads * 16);
                (batch, true)
            };
            all.iter().map(of).collect::<Vec<_>>()
        };
        // 64 tiles a batch entry for 132 multiprocessors, of which three and one leave some idle; 80; 528, whole waves
        assert_eq!(bundle(3, 4), [(3, true), (1, true), (2, false), (4, false)]);
        assert_eq!(bundle(1, 5), [(1, false), (2, true), (4, true)]);
        assert_eq!(bundle(2, 33), [(2, false), (1, false), (4, false)]);
    }

    #[test]
    fn sections_go_along_for_kernels_without_pieces() {
        use crate::backends::testing::{causal, with_mods};
        let shape = crate::problem::ProblemSpec::plain(1, (16, 16), (8192, 8192), 128);
        let problem = with_mods(shape, Some(causal(0)), None);
        let files = bundled(&problem, &["sm_80"], false).expect("made");
        let launch = launch_of(&files);
        let all = launch["variants"][0]["units"].as_array().expect("a list").clone();
        let of = |units: &Value| {
            ["batch", "multiprocessors", "pieces", "whole", "section"].map(|n| units[n].as_u64().unwrap())
        };
        // 4 MB of keys and values a head, 40 MB of cache: five heads, or four so that the last section is full
        assert_eq!(
            all.iter().map(of).collect::<Vec<_>>(),
            [[1, 108, 0, 1024, 4], [2, 108, 0, 2048, 4], [4, 108, 0, 4096, 5]]
        );
    }

    #[test]
    fn decoding_goes_along_with_its_pieces_and_the_kernel_that_joins_them() {
        use crate::backends::testing::{spec, with_mods};
        let shape = crate::problem::ProblemSpec { dtype: crate::base::DType::BF16, ..spec(3, 8, 2, 5, 4000, 64) };
        let problem = with_mods(shape, Some((*window()).clone()), None);
        let files = bundled(&problem, &["sm_80"], false).expect("made");
        let launch = launch_of(&files);
        assert_eq!(launch["decode"][0], json!(["parts", "u64"]));
        let variant = &launch["variants"][0];
        let decode = &variant["decode"];
        assert_eq!((variant["kernel"].as_str(), decode["rows"].as_u64()), (Some("decode_sm80"), Some(20)));
        let splits = decode["splits"].as_u64().expect("a number");
        assert_eq!((variant["q_tiles"].as_u64(), variant["tile_q"].as_u64()), (Some(splits), Some(32)));
        assert_eq!(decode["parts_a_row"].as_u64(), Some(splits * 2)); // four warps, two of them for 32 rows
        let entry = decode["join_entry"].as_str().expect("a name");
        assert!(
            String::from_utf8_lossy(bytes_of(&files, "kernels/decode_sm80.sm_80.cu")).contains(&format!("{entry}("))
        );
        let tensors =
            safetensors::SafeTensors::deserialize(bytes_of(&files, "kernels/tensors.safetensors")).expect("tensors");
        assert_eq!(tensors.tensor("sm_80.row_start").expect("there").shape(), [splits as usize + 1]);
    }

    #[test]
    fn refusals_are_the_backends_own() {
        let problem = problem(None, None);
        assert_eq!(bundled(&problem, &["sm_70"], false).unwrap_err().code, "arch");
        let mut spec = problem.spec().clone();
        spec.dtype = crate::base::DType::F32;
        let single = Problem::new(spec).expect("valid");
        assert_eq!(bundled(&single, &["sm_80"], false).unwrap_err().code, "gpu-float32");
    }
}
