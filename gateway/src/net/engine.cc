#include "net/engine.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "base/boot_clock.h"
#include "base/log.h"
#include "base/log_repeats.h"
#include "base/random_bytes.h"
#include "base/socket_address.h"
#include "iscsi/session_directory.h"
#include "net/admission.h"
#include "net/gather.h"
#include "net/portals.h"
#include "net/reactor.h"
#include "net/tcp_connection.h"
#include "net/wait_for.h"
#include "net/watchdog.h"

namespace sluice::net {
namespace {

class EngineImpl final : public Engine, public Reactors {
 public:
  EngineImpl(Options options, lun::Exports& exports);
  ~EngineImpl() override { stop(limits::kShutdownBound); }

  Result<void> open();
  Reactors& reactors() override { return *this; }
  Result<void> listen(const std::vector<Portal>& portals) override {
    return portals_.open(portals);
  }
  std::vector<std::string> addresses() const override { return portals_.addresses(); }
  void close_portals(const std::vector<std::string>& addresses) override {
    portals_.close(addresses);
  }
  forward::Peers& peers() override { return forwarder_->peers(); }
  iscsi::ForwardingAccess& forwarding() override { return gateway_.forwarding; }
  iscsi::HostFaultReport host_faults() override { return gateway_.host_faults.take_report(); }
  void review_access(const std::string& target) override { directory_->review_all(target); }
  void limit_sessions(unsigned most) override { directory_->limit_sessions(most); }
  void evict(const std::vector<uint16_t>& tsihs) override;
  void expect_gateways(const std::vector<std::string>& addresses) override;
  std::vector<iscsi::SessionView> sessions() override;
  iscsi::CountersSnapshot counters() const override;
  bool stop(Nanos bound) override;

 private:
  unsigned count() const override { return static_cast<unsigned>(reactors_.size()); }
  unsigned current() const override;
  void post(unsigned reactor, std::function<void()> task) override {
    reactors_[reactor]->post(std::move(task));
  }
  void accepted(int fd, const Portal& portal);
  void record_refused(int fd, const std::string& network);
  void make_room(const std::shared_ptr<Admission>& admission);
  unsigned least_loaded() const;
  iscsi::SessionDirectory::Callbacks directory_callbacks();

  Options options_;
  iscsi::Gateway gateway_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  ConnectionBounds bounds_;
  Admissions hosts_;     // at their portals
  Admissions gateways_;  // at the forwarding port; all peers may be behind one address
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::unique_ptr<iscsi::SessionDirectory> directory_;
  std::unique_ptr<Watchdog> watchdog_;
  Portals portals_;
  bool stopped_ = false;
};

EngineImpl::EngineImpl(Options options, lun::Exports& exports)
    : options_(std::move(options)),
      bounds_(bound_connections(options_.descriptors, options_.settings.max_connections)),
      hosts_(
          bounds_.hosts, options_.settings.max_unauthenticated,
          limits::unauthenticated_of_one_network(options_.settings.max_unauthenticated),
          [this](std::string_view network) { return gateway_.known_hosts.known(network); },
          [this](const std::shared_ptr<Admission>& admission) { make_room(admission); }),
      gateways_(
          bounds_.gateways, limits::kMaxForwardingUnauthenticated,
          limits::kMaxForwardingUnauthenticated,
          [this](std::string_view network) { return gateway_.known_gateways.known(network); },
          [this](const std::shared_ptr<Admission>& admission) { make_room(admission); }),
      portals_(reactors_, options_.tcp_congestion,
               [this](int fd, const Portal& portal) { accepted(fd, portal); }) {
  gateway_.settings = options_.settings;
  gateway_.exports = &exports;
  gateway_.random = random_bytes;
  directory_ = std::make_unique<iscsi::SessionDirectory>(*this, directory_callbacks());
  gateway_.directory = directory_.get();
  forwarder_ = std::make_unique<forward::Forwarder>(gateway_, *this);
}

iscsi::SessionDirectory::Callbacks EngineImpl::directory_callbacks() {
  const auto find = [this](iscsi::ConnectionHandle h) -> iscsi::Connection* {
    const auto& live = reactors_[h.reactor]->shard().connections;
    const auto it = live.find(h.id);
    return it == live.end() ? nullptr : it->second;
  };
  iscsi::SessionDirectory::Callbacks callbacks;
  callbacks.end = [find](iscsi::ConnectionHandle h) {
    if (iscsi::Connection* c = find(h)) c->end_session();
  };
  // A connection that is gone released its claim when it went.
  callbacks.granted = [find](iscsi::ConnectionHandle h, uint16_t tsih) {
    if (iscsi::Connection* c = find(h)) c->granted(tsih);
  };
  callbacks.review = [find](iscsi::ConnectionHandle h) {
    if (iscsi::Connection* c = find(h)) c->review_access();
  };
  return callbacks;
}

Result<void> EngineImpl::open() {
  const uint64_t needed = descriptors_for(options_.settings.max_connections);
  if (options_.descriptors < needed) {
    log::warning("few file descriptors: raise RLIMIT_NOFILE (`ulimit -Hn`, systemd's LimitNOFILE=)",
                 {{"descriptors", options_.descriptors},
                  {"needed", needed},
                  {"hosts_let_in", bounds_.hosts}});
  }
  const unsigned n = options_.reactors;
  for (unsigned i = 0; i < n; ++i) {
    Reactor::Setup setup;
    setup.index = i;
    setup.memory = options_.reactor_memory;
    if (!options_.cpus.empty()) setup.cpu = options_.cpus[i % options_.cpus.size()];
    setup.busy_poll = options_.busy_poll;
    setup.reactors = this;
    setup.gateway = &gateway_;
    setup.forwarder = forwarder_.get();
    setup.tcp_congestion = options_.tcp_congestion;
    reactors_.push_back(std::make_unique<Reactor>(setup));
    forwarder_->set_dialer(i, &reactors_.back()->dialer(), &reactors_.back()->shard().now);
  }
  for (const auto& reactor : reactors_) {
    auto started = reactor->start();
    if (!started) return started;
  }
  std::vector<const Reactor*> watched;
  for (const auto& reactor : reactors_) watched.push_back(reactor.get());
  watchdog_ = std::make_unique<Watchdog>(std::move(watched));
  const RingFeatures& f = reactors_[0]->features();
  log::info("io_uring ready", {{"reactors", n},
                               {"single_issuer", f.single_issuer},
                               {"defer_taskrun", f.defer_taskrun},
                               {"multishot", true},
                               {"incremental_buffers", f.incremental_buffers},
                               {"memory_per_reactor", options_.reactor_memory}});
  return {};
}

unsigned EngineImpl::current() const {
  for (unsigned i = 0; i < reactors_.size(); ++i) {
    if (reactors_[i]->on_this_thread()) return i;
  }
  return count();
}

unsigned EngineImpl::least_loaded() const {
  unsigned best = 0;
  for (unsigned i = 1; i < reactors_.size(); ++i) {
    if (reactors_[i]->connections() < reactors_[best]->connections()) best = i;
  }
  return best;
}

// Runs on the listener's reactor. The connection then lives and dies on the least loaded one.
void EngineImpl::accepted(int fd, const Portal& portal) {
  const unsigned to = least_loaded();
  iscsi::Connection::Ends ends;
  ends.peer_network = peer_network(fd);
  std::shared_ptr<Admission> admission =
      (portal.forwarding ? gateways_ : hosts_).admit(ends.peer_network, to);
  if (!admission) {
    reactors_[current()]->shard().counters->connections_refused.add();
    if (!portal.forwarding) record_refused(fd, ends.peer_network);
    // RST, so that neither side keeps state for it.
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::close(fd);
    return;
  }
  Reactor& reactor = *reactors_[to];
  ends.tpgt = portal.tpgt;
  ends.relative_port = portal.relative_port;
  ends.forwarding = portal.forwarding;
  if (reactor.on_this_thread()) {
    return reactor.adopt(fd, std::move(ends), std::move(admission));
  }
  reactor.post([&reactor, fd, ends = std::move(ends), admission = std::move(admission)]() mutable {
    reactor.adopt(fd, std::move(ends), std::move(admission));
  });
}

void EngineImpl::record_refused(int fd, const std::string& network) {
  std::string address = peer_address(fd);
  address.resize(std::min(address.size(), address.rfind(':')));
  gateway_.host_faults.record(
      {.kind = iscsi::HostFaultKind::kLoginRefused,
       .address = std::move(address),
       .reason = "closed without an answer: the gateway has as many connections as it may"},
      gateway_.known_hosts.known(network) ? iscsi::HostFaults::From::kKnown
                                          : iscsi::HostFaults::From::kStranger);
}

// By any thread. The connection may not have come to its reactor yet: adopt() looks, too.
void EngineImpl::make_room(const std::shared_ptr<Admission>& admission) {
  log::repeated(log::Level::kWarning, {},
                "too many connections are logging in: the gateway closes the longest idle ones");
  reactors_[admission->reactor()]->post([admission] {
    if (admission->on_evict) admission->on_evict();
  });
}

void EngineImpl::expect_gateways(const std::vector<std::string>& addresses) {
  std::vector<std::string> networks;
  for (const std::string& address : addresses) networks.push_back(address_network(address));
  gateway_.known_gateways.configure(std::move(networks));
}

std::vector<iscsi::SessionView> EngineImpl::sessions() {
  struct Shared {
    explicit Shared(size_t n) : gather(n) {}
    Gather gather;
    std::vector<iscsi::SessionView> views;
  };
  auto shared = std::make_shared<Shared>(reactors_.size());
  for (const auto& r : reactors_) {
    r->post([shared, reactor = r.get()] {
      std::vector<iscsi::SessionView> mine;
      reactor->for_each_connection([&](TcpConnection& c) {
        if (!c.target() || !c.target()->in_full_feature()) return;
        c.target()->describe(&mine.emplace_back());
      });
      {
        const std::lock_guard lock(shared->gather.mutex());
        for (auto& view : mine) shared->views.push_back(std::move(view));
      }
      shared->gather.arrive();
    });
  }
  shared->gather.wait(2 * kSecond);
  const std::lock_guard lock(shared->gather.mutex());
  return shared->views;
}

iscsi::CountersSnapshot EngineImpl::counters() const {
  iscsi::CountersSnapshot snapshot;
  for (const auto& r : reactors_) {
    snapshot.reactors.push_back(iscsi::read_counters(r->counters()));
  }
  return snapshot;
}

void EngineImpl::evict(const std::vector<uint16_t>& tsihs) {
  for (const auto& r : reactors_) {
    r->post([reactor = r.get(), tsihs] {
      reactor->for_each_connection([&](TcpConnection& c) {
        iscsi::Connection* connection = c.target();
        if (!connection || !connection->in_full_feature()) return;
        if (std::ranges::find(tsihs, connection->tsih()) != tsihs.end()) connection->evict();
      });
    });
  }
}

bool EngineImpl::stop(Nanos bound) {
  if (std::exchange(stopped_, true)) return true;
  const Nanos start = boot_clock_now();
  const Nanos logout = std::min(limits::kShutdownLogout, bound / 2);
  const auto seconds = static_cast<uint16_t>(std::max<Nanos>(1, logout / kSecond));
  for (const auto& r : reactors_) {
    r->post([reactor = r.get(), seconds] {
      reactor->listeners().stop_all();
      reactor->for_each_connection([&](TcpConnection& c) {
        if (c.target()) c.target()->ask_logout(seconds);
      });
    });
  }
  const auto no_connections = [this] { return gateway_.connections.load() == 0; };
  if (!wait_for(no_connections, start + logout)) {
    for (const auto& r : reactors_) {
      r->post([reactor = r.get()] {
        reactor->for_each_connection([](TcpConnection& c) {
          if (c.target()) c.target()->end_session();
        });
      });
    }
  }
  bool clean = wait_for(no_connections, start + bound);
  // Sessions are over, and with them what their links had to do.
  for (unsigned i = 0; i < reactors_.size(); ++i) {
    reactors_[i]->post([this, i] { forwarder_->stop(i); });
    reactors_[i]->stop(!clean);
  }
  // Commands of a medium that hangs outlive their sessions.
  const auto no_reactors = [this] {
    return std::ranges::none_of(reactors_, [](const auto& r) { return r->alive(); });
  };
  if (clean && !wait_for(no_reactors, start + bound)) {
    clean = false;
    for (const auto& r : reactors_) r->stop(true);
  }
  for (const auto& r : reactors_) r->join();
  watchdog_.reset();
  return clean;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(Options options, lun::Exports& exports) {
  auto engine = std::make_unique<EngineImpl>(std::move(options), exports);
  auto opened = engine->open();
  if (!opened) return Error{opened.error()};
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace sluice::net
