//! The origins of tensors that host code computed from tensors that may need gradients.
//!
//! Invariant: an origin describes a storage in its present state; of a storage that was written since, only this fact
//! is known. Must not know the operations.

use crate::base::HostTensor;
use crate::ir::graph::{Graph, NodeId, Op};
use crate::ir::made::Lost;
use crate::python::tensors::{Strided, TensorRef};
use std::collections::HashMap;
use std::rc::Rc;

/// The known origins of all storages.
#[derive(Default)]
pub(crate) struct Origins {
    /// Expressions of parameters' elements.
    pub graph: Graph,
    pub storages: HashMap<usize, Origin>,
    /// Tensors that the mod reads, in their present state, and their origins.
    pub read: Vec<(HostTensor, Read)>,
    /// Whether an operation is being run on expressions.
    pub busy: bool,
}

pub(crate) struct Origin {
    /// Kept, so that no other storage takes its identity.
    pub whole: TensorRef,
    pub version: u64,
    pub kind: Kind,
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// A parameter itself.
    Root {
        name: Rc<str>,
        tensor: HostTensor,
    },
    /// One expression for each element of the storage.
    Nodes(Rc<[NodeId]>),
    Lost(Rc<Lost>),
}

/// Where a tensor that is read comes from.
#[derive(Clone)]
pub(crate) struct Read {
    pub kind: Kind,
    pub view: Strided,
}

impl Origins {
    pub(crate) fn of(&self, handle: &TensorRef) -> Option<Read> {
        if handle.is_detached() {
            return None;
        }
        let origin = self.storages.get(&handle.storage_identity())?;
        let kind = match (&origin.kind, origin.version == handle.version()) {
            (kind, true) => kind.clone(),
            // a parameter's value is its initial content
            (Kind::Root { name, .. }, false) => Kind::Root { name: name.clone(), tensor: origin.whole.read() },
            (Kind::Lost(lost), false) => Kind::Lost(lost.clone()),
            (kind, false) => {
                let parent = self.parent_of(kind).to_string();
                Kind::Lost(Rc::new(Lost { parent, by: "a change in place".into(), span: None }))
            }
        };
        Some(Read { kind, view: handle.layout().clone() })
    }

    /// The name of the parameter that was given as this tensor.
    pub(crate) fn name_of(&self, given: &HostTensor) -> Option<Rc<str>> {
        self.storages.values().find_map(|origin| match &origin.kind {
            Kind::Root { name, tensor } if tensor.same_storage(given) => Some(name.clone()),
            _ => None,
        })
    }

    /// A name that no other parameter has.
    pub(crate) fn free_name(&self, name: &str) -> Rc<str> {
        let taken =
            |name: &str| self.storages.values().any(|o| matches!(&o.kind, Kind::Root { name: n, .. } if **n == *name));
        let mut free = name.to_string();
        let mut n = 1;
        while taken(&free) {
            n += 1;
            free = format!("{name}_{n}");
        }
        free.into()
    }

    /// The name of the first parameter that something follows from.
    pub(crate) fn parent_of(&self, kind: &Kind) -> Rc<str> {
        let captured = |nodes: &[NodeId]| {
            let needed = crate::ir::schedule::needed(&self.graph, nodes);
            let read = needed.iter().find_map(|id| match &self.graph.node(*id).op {
                Op::Load(capture, _) => Some(self.graph.capture(*capture).name.as_str().into()),
                _ => None,
            });
            read.unwrap_or_else(|| "a tensor".into())
        };
        match kind {
            Kind::Root { name, .. } => name.clone(),
            Kind::Nodes(nodes) => captured(&nodes[..nodes.len().min(4)]),
            Kind::Lost(lost) => lost.parent.as_str().into(),
        }
    }

    pub(crate) fn set(&mut self, handle: &TensorRef, kind: Kind) {
        let origin = Origin { whole: handle.clone(), version: handle.version(), kind };
        self.storages.insert(origin.whole.storage_identity(), origin);
    }
}

impl Read {
    /// Flat places in the storage, in the order of the view.
    pub(crate) fn places(&self) -> Vec<usize> {
        let mut walk = self.view.walk();
        (0..self.view.numel()).map(|_| walk.next()).collect()
    }
}
