//! What a race of the open document asks the worker for.
//!
//! Invariant: a race in the window and a job without it ask for the same. Must not know who runs it.

use crate::app::compile::Built;
use crate::app::races::{OWN, Wanted};
use crate::app::state::State;
use crate::base::Diagnostic;
use crate::tasks::plan;
use crate::worker::protocol::{GradientRequest, RunRequest, SeedSource};

/// The request for a race of `built`. None: there is no problem or no backend, which the user is told.
pub(super) fn request(state: &mut State, built: &Built, wanted: Wanted) -> Option<RunRequest> {
    let device = state.session.device(&state.document);
    let problem = match &built.problem {
        Ok(problem) => problem,
        Err(why) => {
            why.clone().into_iter().for_each(|d| state.tell(d));
            return None;
        }
    };
    let mut request = plan::run_request(problem, &built.document.settings, device);
    let own_gradients = wanted == Wanted::OwnGradients;
    if own_gradients {
        request.backends = OWN.to_vec();
    }
    if request.backends.is_empty() {
        let why = Diagnostic::error("no-backends", "no backend is selected for the race");
        state.tell(why.hint("select at least one on the right, under Backends"));
        return None;
    }
    request.inputs = state.input_source();
    request.options.rounds = state.view.rounds;
    if state.view.backward || own_gradients {
        let seeds = SeedSource::Random { seed: built.document.settings.seed };
        let (rounds, deterministic) = (state.view.rounds, state.view.deterministic);
        request.gradients = Some(GradientRequest { seeds, rounds, keep: false, deterministic });
    }
    request.python = state.view.python.clone();
    Some(request)
}
