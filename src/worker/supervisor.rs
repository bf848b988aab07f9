//! A worker that is available on demand: started on the first request, and again after an end or a cancel.
//!
//! Invariant: events come only from the running worker; a cancelled worker sends none. Must not know what requests do.

use crate::base::Diagnostic;
use crate::worker::client::{Answer, Client, Event};
use crate::worker::patience::Patience;
use crate::worker::protocol::{RequestBody, ResponseBody};
use crate::worker::target::Target;
use std::sync::Arc;

/// Owner of one worker at a time.
pub struct Supervisor {
    target: Target,
    patience: Patience,
    wake: Arc<dyn Fn() + Send + Sync>,
    client: Option<Client>,
}

impl Supervisor {
    /// For `target`; nothing is launched yet. `wake` is called from another thread when something has arrived.
    pub fn new(target: Target, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { target, patience: Patience::default(), wake, client: None }
    }

    /// How long workers that start from here on may keep silent.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Where it works.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a request, starting a worker if none runs. Errors: it cannot start.
    pub fn send(&mut self, body: RequestBody) -> Result<u64, Diagnostic> {
        Ok(self.living()?.send(body))
    }

    /// Sends a request and blocks until it is answered.
    pub fn ask(
        &mut self,
        body: RequestBody,
        on_progress: &mut dyn FnMut(&ResponseBody),
    ) -> Result<Answer, Vec<Diagnostic>> {
        let client = self.living().map_err(|d| vec![d])?;
        let id = client.send(body);
        client.wait_with(id, on_progress)
    }

    /// Everything that has arrived; a `Died` is the last event of its worker. Never blocks.
    pub fn poll(&mut self) -> Vec<Event> {
        let Some(client) = &mut self.client else { return Vec::new() };
        let events = client.poll();
        if !client.is_alive() {
            self.client = None;
        }
        events
    }

    /// Cancels the running work: kills the worker. Its pending events are dropped; the next `send` starts a new one.
    pub fn cancel(&mut self) {
        self.client = None;
    }

    fn living(&mut self) -> Result<&mut Client, Diagnostic> {
        if self.client.as_ref().is_some_and(|c| !c.is_alive()) {
            self.client = None;
        }
        if self.client.is_none() {
            let wake = self.wake.clone();
            self.client = Some(Client::launch_with(&self.target, self.patience, Box::new(move || wake()))?);
        }
        Ok(self.client.as_mut().expect("launched above"))
    }
}
