// The sluice-gateway program: composition only; the rooms describe the parts.
//
// flags -> configuration -> engine (nothing listens) -> exports -> portals open -> signals
//
// With a control plane, exports and portals come from there (cluster.h).
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <vector>

#include "admin/client.h"
#include "admin/health_watch.h"
#include "admin/lun_report.h"
#include "admin/server.h"
#include "admin/session_report.h"
#include "base/blocking_section.h"
#include "base/boot_clock.h"
#include "base/exit_guard.h"
#include "base/log.h"
#include "base/safety_mutation.h"
#include "base/service_manager.h"
#include "cluster.h"
#include "config/apply.h"
#include "config/complete.h"
#include "config/flags.h"
#include "config/summary.h"
#include "config/volumes.h"
#include "desired/exporter.h"
#include "exit_codes.h"
#include "final_sync.h"
#include "harden.h"
#include "metrics/endpoint.h"
#include "net/engine.h"
#include "nexus/exports.h"
#include "passthrough/install.h"
#include "rbd/rbd_backend.h"
#include "state_lock.h"
#include "unit/reservations/reservation_store.h"
#include "unit/unit.h"

namespace sluice {
namespace {

using config::Config;
using config::Flags;

int complain(const std::string& message, int code) {
  std::fprintf(stderr, "sluice-gateway: %s\n", message.c_str());
  return code;
}

// Messages of several faults have one per line, and so has the log.
void log_lines(log::Level level, std::string_view message, std::string_view faults) {
  while (!faults.empty()) {
    const size_t end = std::min(faults.find('\n'), faults.size());
    log::write(level, message, {{"error", faults.substr(0, end)}});
    faults.remove_prefix(std::min(end + 1, faults.size()));
  }
}

int ask_gateway(const Flags& flags) {
  const bool sessions = flags.command == Flags::Command::kSessions;
  const std::string path = flags.admin_socket.value_or(config::default_admin_socket());
  const Result<std::string> json = admin::ask(path, sessions ? "sessions" : "luns");
  if (!json) return complain(json.error(), kFailed);
  if (flags.json) return std::printf("%s\n", json.value().c_str()) < 0 ? kFailed : kFine;
  const Result<std::string> table =
      sessions ? admin::sessions_table(json.value()) : admin::luns_table(json.value());
  if (!table) return complain(table.error(), kFailed);
  return std::printf("%s", table.value().c_str()) < 0 ? kFailed : kFine;
}

int accept_system(const Flags& flags) {
  const std::string path = flags.admin_socket.value_or(config::default_admin_socket());
  const Result<std::string> done = admin::ask(path, "accept-system", flags.system_id);
  if (!done) return complain(done.error(), kFailed);
  return std::printf("this gateway belongs to system %s from now on\n", flags.system_id.c_str()) < 0
             ? kFailed
             : kFine;
}

// Blocked in every thread made from here on; run() waits for them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

net::Options engine_options(const Config& config) {
  net::Options options;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) options.descriptors = files.rlim_cur;
  options.reactors = config.reactors;
  options.reactor_memory = config.reactor_memory;
  options.cpus.assign(config.reactor_cpus.begin(), config.reactor_cpus.end());
  options.tcp_congestion = config.tcp_congestion;
  options.busy_poll = config.busy_poll;
  iscsi::Settings& settings = options.settings;
  settings.offer = config.offer;
  settings.command_window = config.connections.command_window;
  settings.login_timeout = config.connections.login_timeout;
  settings.nop_silence = config.connections.nop_silence;
  settings.nop_timeout = config.connections.nop_timeout;
  settings.max_connections = config.connections.max;
  settings.max_unauthenticated = config.connections.max_unauthenticated;
  return options;
}

class Gateway {
 public:
  Gateway(Flags flags, Config config) : flags_(std::move(flags)), config_(std::move(config)) {}

  int run() {
    const sigset_t signals = block_signals();
    log::start({.level = config_.log.level, .format = config_.log.format, .sink = {}});
    log::info("starting", {{"version", config::version()}, {"pid", ::getpid()}});
    exit_guard_ = std::make_unique<ExitGuard>();
    const Result<void> up = start();
    int code = kFine;
    if (up) {
      announce();
      serve(signals);
    } else {
      log_lines(log::Level::kError, "start failed", up.error());
      code = state_lock_.in_use ? kStateInUse : kFailed;
    }
    if (!stop()) {
      // Something still uses what would be destroyed now.
      sync_caches(exports_, limits::kShutdownSync / 2);
      log::error("stopped with work in flight");
      log::stop();
      ExitGuard::prepare();
      ::_exit(kFailed);
    }
    log::info("stopped");
    log::stop();
    return code;
  }

 private:
  bool clustered() const { return config_.control_plane.given(); }

  Result<void> start() {
    const BlockingSection section;
    using Steps = std::vector<Result<void> (Gateway::*)()>;
    const Steps alone{&Gateway::open_store, &Gateway::start_engine,  &Gateway::show_exports,
                      &Gateway::listen,     &Gateway::start_metrics, &Gateway::start_admin};
    const Steps together{&Gateway::lock_state, &Gateway::start_engine, &Gateway::start_metrics,
                         &Gateway::start_admin, &Gateway::join};
    for (auto step : clustered() ? together : alone) {
      Result<void> done = (this->*step)();
      if (!done) return done;
    }
    health_ = std::make_unique<admin::HealthWatch>(exports_);
    return {};
  }

  Result<void> open_store() {
    std::error_code ignored;  // what is wrong shows at once
    std::filesystem::create_directories(
        std::filesystem::path(config_.state_directory).parent_path(), ignored);
    auto store = lun::FileReservationStore::open(config_.state_directory);
    if (store) {
      store_ = std::move(store).value();
    } else if (config_.state_directory_given) {
      return Error{store.error()};
    } else {
      // Two gateways tried out on one machine: honest, but not a reason to fail.
      log::warning("persistent reservations won't outlive this process; give --state-dir",
                   {{"error", store.error()}});
    }
    return {};
  }

  // Before all else: a second process of this gateway touches nothing.
  Result<void> lock_state() { return lock_state_directory(config_.state_directory, &state_lock_); }

  Result<void> start_engine() {
    auto engine = net::Engine::start(engine_options(config_), exports_);
    if (!engine) return Error{engine.error()};
    engine_ = std::move(engine).value();
    return {};
  }

  Result<void> show_exports() {
    volumes_ = std::make_unique<config::Volumes>(
        config::Volumes::Setup{.reactors = engine_->reactors().count(), .store = store_});
    exporter_ = std::make_unique<desired::Exporter>(desired::Exporter::Setup{
        .exports = exports_,
        .reactors = engine_->reactors(),
        .units = *volumes_,
        .review = [this](const std::string& target) { engine_->review_access(target); }});
    const Result<config::Changes> changes = config::from_scratch(config_);
    if (!changes) return Error{changes.error()};
    const Result<desired::Outcome> done = config::apply(changes.value(), *volumes_, *exporter_);
    if (!done) return Error{done.error()};
    return {};
  }

  // DESIGN R11: only now, when every LUN is there.
  Result<void> listen() {
    std::vector<net::Portal> portals;
    portals.reserve(config_.portals.size());
    for (const config::PortalConfig& portal : config_.portals) {
      portals.push_back(
          {.address = portal.address, .tpgt = portal.tpgt, .relative_port = portal.tpgt});
    }
    const Result<void> open = engine_->listen(portals);
    if (!open) return Error{open.error()};
    const std::vector<std::string> bound = engine_->addresses();
    std::vector<desired::Portal> shown;
    shown.reserve(config_.portals.size());
    for (size_t i = 0; i < config_.portals.size(); ++i) {
      const config::PortalConfig& portal = config_.portals[i];
      shown.push_back({.bound = bound.at(i), .advertised = portal.advertise, .tpgt = portal.tpgt});
    }
    exporter_->show_portals(shown);
    return {};
  }

  Result<void> join() {
    auto client = join_cluster(config_, exports_, *engine_);
    if (!client) return Error{client.error()};
    const std::lock_guard lock(client_mutex_);
    client_ = std::move(client).value();
    return {};
  }

  // The admin socket's thread.
  Result<std::string> accept_system(const std::string& system) {
    const std::lock_guard lock(client_mutex_);
    if (client_ == nullptr) return Error{"this gateway is in no cluster, or still starting"};
    const Result<void> accepted = client_->accept_system(system);
    if (!accepted) return Error{accepted.error()};
    return std::string("null");
  }

  Result<void> start_metrics() {
    if (config_.metrics.empty()) return {};
    auto endpoint = metrics::Endpoint::start(config_.metrics,
                                             {.counters = [this] { return engine_->counters(); },
                                              .exports = &exports_,
                                              .version = std::string(config::version())});
    if (!endpoint) return Error{endpoint.error()};
    metrics_ = std::move(endpoint).value();
    log::info("metrics served", {{"address", config_.metrics}, {"port", metrics_->port()}});
    return {};
  }

  Result<void> start_admin() {
    if (config_.admin_socket.empty()) return {};
    auto server = admin::Server::start(
        config_.admin_socket,
        {{"sessions", [this] { return admin::sessions_json(engine_->sessions()); }},
         {"luns", [this] { return admin::luns_json(admin::lun_views(exports_)); }}},
        {{"accept-system", [this](const std::string& id) { return accept_system(id); }}});
    if (server) {
      admin_ = std::move(server).value();
    } else if (config_.admin_socket_given) {
      return Error{server.error()};
    } else {
      log::warning("`sluice-gateway sessions` can't ask this gateway; give --admin-socket",
                   {{"error", server.error()}});
    }
    return {};
  }

  void announce() {
    if (clustered()) {
      // Portals come with the first snapshot, from the control plane or from disk.
      return service_manager::ready("gateway " + config_.control_plane.gateway + " of a cluster");
    }
    std::string portals;
    for (const std::string& address : engine_->addresses()) {
      portals += (portals.empty() ? "" : ",") + address;
    }
    log::info("listening", {{"portals", portals},
                            {"reactors", engine_->reactors().count()},
                            {"targets", config_.targets.size()}});
    service_manager::ready("listening on " + portals);
  }

  void serve(const sigset_t& signals) {
    for (;;) {
      int signal = 0;
      if (::sigwait(&signals, &signal) != 0) continue;
      log::info("signal", {{"name", std::string_view(::sigabbrev_np(signal))}});
      if (signal != SIGHUP) return;
      service_manager::reloading();
      const Result<void> done = reload();
      if (!done) {
        log_lines(log::Level::kError, "reload failed, the configuration in force stays",
                  done.error());
      }
      service_manager::ready(done ? "reloaded" : "reload failed, see the log");
    }
  }

  Result<void> reload() {
    const BlockingSection section;
    const Result<Config> next = config::load(flags_);
    if (!next) return Error{next.error()};
    const Result<config::Changes> changes = config::diff(config_, next.value());
    if (!changes) return Error{changes.error()};
    desired::Outcome outcome;
    if (!clustered()) {
      Result<desired::Outcome> done = config::apply(changes.value(), *volumes_, *exporter_);
      if (!done) return Error{done.error()};
      outcome = std::move(done).value();
    }
    config_ = changes.value().in_force;
    log::set_level(config_.log.level);
    for (const std::string& line : config::describe(changes.value(), outcome)) {
      log::info("configuration changed", {{"change", line}});
    }
    for (const std::string& key : changes.value().need_restart) {
      log::warning("waits for a restart", {{"key", key}});
    }
    log::info("reloaded");
    return {};
  }

  // In the reverse order of start(). False: see run().
  bool stop() {
    service_manager::stopping();
    exit_guard_->end_process_after(limits::kShutdownBound, kFailed);
    const Nanos end = boot_clock_now() + limits::kShutdownBound - limits::kShutdownSync;
    admin_.reset();
    // Volumes go over to other gateways while hosts are still connected (DESIGN R7).
    const bool left = client_ == nullptr || client_->stop(limits::kShutdownBound / 2);
    const bool health_stopped = health_ == nullptr || health_->stop();
    const Nanos left_time = std::max(end - boot_clock_now(), kSecond);
    const bool drained = engine_ == nullptr || engine_->stop(left_time);
    metrics_.reset();
    // Units may still ask it; the reactors it answers on are about to go.
    if (drained && store_) store_->stop();
    return left && health_stopped && drained;
  }

  std::unique_ptr<ExitGuard> exit_guard_;  // first: it watches the destructors of the others
  const Flags flags_;
  Config config_;
  StateLock state_lock_;
  std::shared_ptr<lun::ReservationStore> store_;
  lun::Exports exports_;
  // Both null in a cluster.
  std::unique_ptr<config::Volumes> volumes_;
  std::unique_ptr<desired::Exporter> exporter_;
  std::unique_ptr<net::Engine> engine_;
  std::mutex client_mutex_;  // of making client_, for the admin socket's thread
  std::unique_ptr<control::Client> client_;
  std::unique_ptr<admin::HealthWatch> health_;
  std::unique_ptr<metrics::Endpoint> metrics_;
  std::unique_ptr<admin::Server> admin_;
};

int run(int argc, const char* const* argv) {
  const char* mutation = safety_mutation();
  const config::Invocation invocation = config::parse_flags(argc, argv);
  if (!invocation.flags) {
    std::FILE* out = invocation.exit_code == kFine ? stdout : stderr;
    std::fputs(invocation.output.c_str(), out);
    return invocation.exit_code;
  }
  const Flags& flags = *invocation.flags;
  if (flags.command == Flags::Command::kSessions || flags.command == Flags::Command::kLuns) {
    return ask_gateway(flags);
  }
  if (flags.command == Flags::Command::kAcceptSystem) return accept_system(flags);
  Result<Config> config = config::load(flags);
  if (!config) return complain(config.error(), kBadConfiguration);
  if (flags.command == Flags::Command::kCheck) {
    return std::printf("%s", config::summary(config.value()).c_str()) < 0 ? kFailed : kFine;
  }
  if (*mutation != 0) std::fprintf(stderr, "safety mutation %s: loses data\n", mutation);
  harden(config->core_dumps);
  rbd::install();
  passthrough::install();
  return Gateway(flags, std::move(config).value()).run();
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::run(argc, argv); }
