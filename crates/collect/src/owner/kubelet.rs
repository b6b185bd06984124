//! Names of pods from the kubelet's read-only API, asked in a thread of its own: it may be slow or away.

use super::cgroup::Place;
use super::container::{Names, Pods};
use super::value::clean;
use crate::confine::{self, Keep};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, Read};
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The kubelet is asked at most this often.
const EVERY: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);
/// All pods of a node; some twenty KiB each.
const BODY_BYTES: u64 = 64 << 20;
const MOST_CONTAINERS: usize = 20_000;
/// Containers of one kind in one pod.
const MOST_IN_POD: usize = 1000;

/// Why a URL cannot be one of the read-only API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to use the kubelet at {0:?}: its read-only API has a URL such as http://127.0.0.1:10255\nhint: readOnlyPort in the kubelet's configuration; without it names come from /var/log/containers and /run/containerd"
)]
pub struct WrongUrl(String);

/// Asks a kubelet when a container is not known.
#[derive(Debug)]
pub struct Kubelet {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// By id of the container.
    containers: HashMap<String, Names>,
    trouble: Option<String>,
    wanted: bool,
    stopped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kubelet {
    /// Asks `URL/pods`, once something is not known.
    ///
    /// # Errors
    /// The URL is not `http://HOST…`.
    pub fn start(url: &str) -> Result<Kubelet, WrongUrl> {
        Kubelet::start_every(url, EVERY)
    }

    fn start_every(url: &str, every: Duration) -> Result<Kubelet, WrongUrl> {
        let wrong = || WrongUrl(url.to_owned());
        let uri: ureq::http::Uri = url.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("http") || uri.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let pods = format!("{}/pods", url.trim_end_matches('/').trim_end_matches("/pods"));
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("kubelet".to_owned());
        let ask = move || {
            confine::this_thread(Keep::NoCapability);
            ask_when_wanted(&own, &pods, every);
        };
        if let Err(error) = thread.spawn(ask) {
            shared.lock().trouble = Some(format!("failed to start a thread: {error}"));
        }
        Ok(Kubelet { shared })
    }
}

impl Pods for Kubelet {
    fn names(&mut self, place: &Place) -> Option<Names> {
        let mut state = self.shared.lock();
        let found = place
            .container_id
            .as_ref()
            .and_then(|id| state.containers.get(id))
            .cloned();
        if found.is_none() && !state.wanted {
            state.wanted = true;
            self.shared.changed.notify_one();
        }
        found
    }

    fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }
}

/// The thread ends by itself, after an answer that it may be waiting for.
impl Drop for Kubelet {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_one();
    }
}

fn ask_when_wanted(shared: &Shared, url: &str, every: Duration) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        // a proxy for the world knows nothing of this node
        .proxy(None)
        .max_redirects(0)
        .build()
        .into();
    while wait_for_wish(shared) {
        let asked = Instant::now();
        let answer = ask(&agent, url);
        let mut state = shared.lock();
        match answer {
            Ok(containers) => (state.containers, state.trouble) = (containers, None),
            Err(words) => state.trouble = Some(format!("failed to ask the kubelet at {url}: {words}")),
        }
        state.wanted = false;
        let is_running = |state: &mut State| !state.stopped;
        let rest = every.saturating_sub(asked.elapsed());
        drop(shared.changed.wait_timeout_while(state, rest, is_running));
    }
}

/// `false`: nobody will ask any more.
fn wait_for_wish(shared: &Shared) -> bool {
    let idle = |state: &mut State| !state.wanted && !state.stopped;
    let state = shared.changed.wait_while(shared.lock(), idle);
    !state.unwrap_or_else(PoisonError::into_inner).stopped
}

fn ask(agent: &ureq::Agent, url: &str) -> Result<HashMap<String, Names>, String> {
    let mut response = agent.get(url).call().map_err(|error| error.to_string())?;
    let body = response.body_mut().with_config().limit(BODY_BYTES).reader();
    names_in(BufReader::new(body))
}

#[derive(Deserialize)]
struct PodList {
    items: Option<Containers>,
}

/// The containers of a list of pods, of which only one is kept at a time: a list may be long.
struct Containers(HashMap<String, Names>);

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Containers, D::Error> {
        let mut found = HashMap::new();
        let take = |pod| {
            let room = MOST_CONTAINERS.saturating_sub(found.len());
            found.extend(containers_of(pod).take(room));
        };
        from.deserialize_seq(Each(take, PhantomData))?;
        Ok(Containers(found))
    }
}

/// The first of a list; those beyond [`MOST_IN_POD`] are read and forgotten.
struct First<T>(Vec<T>);

impl<T> Default for First<T> {
    fn default() -> First<T> {
        First(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<First<T>, D::Error> {
        let mut first = Vec::new();
        let take = |one| {
            if first.len() < MOST_IN_POD {
                first.push(one);
            }
        };
        from.deserialize_seq(Each(take, PhantomData))?;
        Ok(First(first))
    }
}

/// Hands each element of a list on.
struct Each<T, F: FnMut(T)>(F, PhantomData<T>);

impl<'de, T: DeserializeOwned, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(one) = list.next_element()? {
            (self.0)(one);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(rename = "ownerReferences", default)]
    owners: First<OwnerReference>,
    #[serde(default)]
    labels: PodLabels,
}

/// Of a pod's labels, the one that a Deployment adds to the name of its ReplicaSet.
#[derive(Deserialize, Default)]
struct PodLabels {
    #[serde(rename = "pod-template-hash", default)]
    template_hash: String,
}

#[derive(Deserialize)]
struct OwnerReference {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    controller: bool,
}

impl Metadata {
    /// The Job, Deployment or whatever keeps the pod; empty: nothing does.
    fn controller(&self) -> &str {
        // a static pod is its node's
        let found = self
            .owners
            .0
            .iter()
            .find(|owner| owner.controller && owner.kind != "Node");
        let name = found.map_or("", |owner| owner.name.as_str());
        let hash = &self.labels.template_hash;
        let bare = name.strip_suffix(hash.as_str()).and_then(|name| name.strip_suffix('-'));
        bare.filter(|_| !hash.is_empty()).unwrap_or(name)
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    container_statuses: First<ContainerStatus>,
    init_container_statuses: First<ContainerStatus>,
    ephemeral_container_statuses: First<ContainerStatus>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(default)]
    name: String,
    /// `containerd://ID`; absent before it is started.
    #[serde(rename = "containerID", default)]
    container_id: String,
}

/// The names of all containers in the text of `/pods`, by id.
///
/// # Errors
/// It is no list of pods.
pub fn names_in(text: impl Read) -> Result<HashMap<String, Names>, String> {
    let list: PodList = serde_json::from_reader(text).map_err(|error| format!("no list of pods: {error}"))?;
    Ok(list.items.map(|items| items.0).unwrap_or_default())
}

fn containers_of(pod: Pod) -> impl Iterator<Item = (String, Names)> {
    let Pod { metadata, status } = pod;
    let all = status
        .container_statuses
        .0
        .into_iter()
        .chain(status.init_container_statuses.0);
    all.chain(status.ephemeral_container_statuses.0)
        .filter_map(move |container| {
            let (_, id) = container.container_id.split_once("://")?;
            let names = Names {
                namespace: clean(metadata.namespace.as_bytes()),
                pod: clean(metadata.name.as_bytes()),
                container: clean(container.name.as_bytes()),
                controller: clean(metadata.controller().as_bytes()),
            };
            Some((id.to_owned(), names))
        })
}

#[cfg(test)]
#[path = "kubelet_tests.rs"]
mod tests;
