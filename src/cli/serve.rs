//! Options of `gpuscope serve`. What they mean, and their bounds, is [`crate::serve::config`]'s business: a file may
//! say the same, and both are read by the same code.

use clap::{Args, ValueHint};
use std::path::PathBuf;

pub(crate) const SERVE_HELP: &str = "\
Examples:
  sudo gpuscope serve
      metrics of the whole machine at http://127.0.0.1:9748/metrics, for this machine only
  sudo gpuscope serve --display-interval 5s
      a page each five seconds beside that: devices, and who does what on them
  gpuscope serve --collect nvml,xid,self
      only what the driver says of devices: no probes, no privileges
  sudo gpuscope serve --collect '!memory,!launches'
      all but these
  sudo gpuscope serve --collect +sites
      the usual ones, and at which lines of programs threads wait
  sudo gpuscope serve --listen 0.0.0.0:9748 --web-config web.yml
      for other machines, too, with TLS and passwords
  sudo gpuscope serve --otlp http://collector:4318/v1/metrics
      push to an OpenTelemetry collector, beside what is served
  sudo gpuscope serve --config /etc/gpuscope.toml
      all of this out of a file; kill -HUP reads it again
  sudo gpuscope serve --keep 60s --keep-folder /var/lib/gpuscope/kept
      the last minute of a program that fails, as a recording for gpuscope report
  sudo gpuscope serve --budget 1%
      launches, copies and waits go unseen for a while where probes take more than that of a program's time
  gpuscope serve --config /etc/gpuscope.toml --check-config
      is the file right, and what does it come to?

Collectors: api (calls and the time in them), getters (cudaGetDevice and its likes in api, too), buckets (how long each call took, as a histogram), errors (by name), memory (who holds it), launches (kernels by name), \
copies, sync (waiting, idle time), nvml (devices), xid, self (gpuscope and what it costs). Each adds only the probes \
that it needs; nvml, xid and self need none.

Labels: comm, exe, cmdline, env:NAME, namespace, pod, pod_uid, container, container_id, unit, slurm_job, \
slurm_step, user, job, program, rank, pid.

A file has the same names with _ for -, such as top_kernels = 20; those of --otlp are in [otlp]: url, interval, \
timeout, headers. Flags go before the file.

Exit status: 0 ended by Ctrl-C or SIGTERM, or the configuration is right; 1 failed; 2 wrong usage or configuration.";

#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// Collectors, separated by commas; ! before a name leaves it out, + adds it to the usual ones [default: all but getters,
    /// buckets, driver and sites]
    #[arg(long, value_name = "NAMES", help_heading = "What is measured")]
    pub collect: Vec<String>,
    /// Calls of runtime (libcudart: what was written), driver (libcuda: what happened), kernel (as --collect driver), or
    /// all [default: runtime,driver]
    #[arg(long, value_name = "NAMES", help_heading = "What is measured")]
    pub layer: Vec<String>,
    /// Also count calls of the functions that FILE describes, in any library (repeatable)
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath, help_heading = "What is measured")]
    pub hooks: Vec<String>,
    /// How often the driver is asked for the state of devices [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = "What is measured")]
    pub nvml_interval: Option<String>,
    /// How much of a program's time probes may take, such as 1%: beyond, frequent calls go unseen for a while, launches, copies and
    /// waits or queries, whichever are dearest; who holds memory is always seen [default: off]
    #[arg(long, value_name = "PERCENT", help_heading = "What is measured")]
    pub budget: Option<String>,
    /// Programs that may spend more than --budget, by a label of --labels or by their cgroup, such as unit=render-*.service or
    /// cgroup=/batch.slice/*: nothing goes unseen on their account (repeatable)
    #[arg(long, value_name = "LABEL=GLOB", help_heading = "What is measured")]
    pub budget_except: Vec<String>,

    /// Address and port of the web server (repeatable); other machines need 0.0.0.0:9748, say
    /// [default: 127.0.0.1:9748]
    #[arg(
        long,
        value_name = "ADDR:PORT",
        visible_alias = "metrics-addr",
        help_heading = "Where it is shown"
    )]
    pub listen: Vec<String>,
    /// Address and port where /healthz and /readyz alone are answered, in clear and without a password, for who looks
    /// after the process (repeatable) [default: none]
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Where it is shown")]
    pub health_listen: Vec<String>,
    /// Where on the server the metrics are [default: /metrics]
    #[arg(long, value_name = "PATH", help_heading = "Where it is shown")]
    pub telemetry_path: Option<String>,
    /// TLS and passwords of the web server, in the form that all of Prometheus' exporters read
    #[arg(long, value_name = "FILE.yml", value_hint = ValueHint::FilePath, help_heading = "Where it is shown")]
    pub web_config: Option<String>,
    /// Print a page each time this has passed, such as 5s; a bare number is seconds [default: off]
    #[arg(long, value_name = "TIME", help_heading = "Where it is shown")]
    pub display_interval: Option<String>,

    /// What processes are counted by, separated by commas; '' for nothing
    /// [default: comm,namespace,pod,container,container_id,unit,slurm_job]
    #[arg(long, value_name = "NAMES", help_heading = "Labels and limits")]
    pub labels: Vec<String>,
    /// The read-only address of the kubelet, for names of pods; without it, files of this machine tell them [default: off]
    #[arg(long, value_name = "URL", help_heading = "Labels and limits")]
    pub kubelet: Option<String>,
    /// The socket on which the kubelet tells which devices pods have [default: /var/lib/kubelet/pod-resources/kubelet.sock]
    #[arg(long, value_name = "PATH", help_heading = "Labels and limits")]
    pub pod_resources: Option<String>,
    /// Kernels that get a name of their own; launches of the others are added up as other [default: 10]
    #[arg(long, value_name = "N", help_heading = "Labels and limits")]
    pub top_kernels: Option<String>,
    /// Series of one metric; those left out are counted and shown [default: 10000]
    #[arg(long, value_name = "N", help_heading = "Labels and limits")]
    pub max_series: Option<String>,
    /// Sets of labels; processes beyond are counted together as other [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Labels and limits")]
    pub max_owners: Option<String>,
    /// How long series go on after the last process that they count has ended [default: 1h]
    #[arg(long, value_name = "TIME", help_heading = "Labels and limits")]
    pub retain: Option<String>,

    /// Keep the calls of the last TIME of each process in memory, and write them as a recording when one fails for good or for want of
    /// memory, on an Xid, and when POST /-/keep asks: events of each call then, not counts alone [default: off]
    #[arg(long, value_name = "TIME", help_heading = "Black box")]
    pub keep: Option<String>,
    /// Memory for that, of all processes together; beyond, the oldest of who has most is dropped [default: 64MiB]
    #[arg(long, value_name = "SIZE", help_heading = "Black box")]
    pub keep_memory: Option<String>,
    /// Where recordings go [default: kept in $STATE_DIRECTORY]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Black box")]
    pub keep_folder: Option<String>,
    /// What they take there together; old ones are deleted [default: 1GiB]
    #[arg(long, value_name = "SIZE", help_heading = "Black box")]
    pub keep_disk: Option<String>,

    /// Push the same metrics by OTLP/HTTP to URL, in full with its path [default: off]
    #[arg(long, value_name = "URL", help_heading = "Push")]
    pub otlp: Option<String>,
    /// How often [default: 15s]
    #[arg(long, value_name = "TIME", help_heading = "Push")]
    pub otlp_interval: Option<String>,
    /// How long an answer may take [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Push")]
    pub otlp_timeout: Option<String>,
    /// A header of each request (repeatable); secrets belong into the file, as others can read command lines
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Push")]
    pub otlp_header: Vec<String>,

    /// Read FILE; SIGHUP reads it again
    #[arg(long, value_name = "FILE.toml", help_heading = "Configuration")]
    pub config: Option<PathBuf>,
    /// Say whether flags and file are right, print what they come to, and end
    #[arg(long, help_heading = "Configuration")]
    pub check_config: bool,
    /// What libbpf says, on stderr
    #[arg(short, long, help_heading = "Configuration")]
    pub verbose: bool,

    /// As --collect memory,self
    #[arg(long, help_heading = "For users of GPUprobe")]
    pub memleak: bool,
    /// As --collect api,errors,launches,self
    #[arg(long, help_heading = "For users of GPUprobe")]
    pub cudatrace: bool,
    /// As --collect copies,self; these three add up, also with --collect
    #[arg(long, help_heading = "For users of GPUprobe")]
    pub bandwidth_util: bool,
}
