#include "control/client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/boot_clock.h"
#include "base/log.h"
#include "control/client_commits.h"
#include "control/contact.h"
#include "control/desired_file.h"
#include "control/desired_saver.h"
#include "control/host_access.h"
#include "control/host_reports.h"
#include "control/job_runner.h"
#include "control/lun_numbers.h"
#include "control/pool_prober.h"
#include "control/volume_load.h"

namespace sluice::control {
namespace {

constexpr Nanos kTick = 100 * kMillisecond;

// Tasks that may wait for a pool are in the group of that pool. None of these waits for a disk.
Executor::Strand applies() { return {"desired state", "apply"}; }
Executor::Strand reports(const char* what) { return {"reports", what}; }

std::string system_of(const Snapshot& state) {
  const wire::DesiredSettings* settings = state.settings();
  return settings == nullptr ? std::string() : settings->system_id();
}

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(ClientSetup setup)
      : setup_(std::move(setup)),
        membership_(setup_.ports_in_use),
        file_(setup_.state_directory, setup_.gateway.name),
        numbers_(setup_.state_directory),
        self_(this_process(setup_.gateway.incarnation, {})),
        executor_({.threads = limits::kControlThreads}),
        commits_([this](wire::ConnectRequest m) { return stream_->request(std::move(m)); }),
        store_(std::make_shared<StreamReservations>(StreamReservations::Setup{
            .request = [this](wire::ConnectRequest m) { return stream_->request(std::move(m)); },
            .fenced = [this](const std::string& volume) { volumes_.fenced(volume); },
            .executor = executor_})),
        volumes_({.reactors = setup_.around.reactors,
                  .executor = executor_,
                  .reservations = store_,
                  .report =
                      [this](const wire::VolumeObserved& observed) {
                        wire::ConnectRequest m;
                        *m.mutable_volume_observed() = observed;
                        stream_->observe(std::move(m));
                      },
                  .services = {.commits = commits_, .incarnation = setup_.gateway.incarnation},
                  .rbd = setup_.rbd,
                  .nearly_full = setup_.nearly_full,
                  .device_records = setup_.device_records,
                  .cut_off_from =
                      [this](uint16_t owner) {
                        return contact_.cut_off_from(owner, boot_clock_now());
                      }}),
        jobs_({.volumes = volumes_,
               .executor = executor_,
               .reactors = setup_.around.reactors,
               .report =
                   [this](const wire::JobResult& result) {
                     wire::ConnectRequest m;
                     *m.mutable_job_result() = result;
                     stream_->observe(std::move(m));
                   }}),
        prober_(volumes_.pools(), executor_,
                [this](const wire::PoolObserved& observed) {
                  wire::ConnectRequest m;
                  *m.mutable_pool_observed() = observed;
                  stream_->observe(std::move(m));
                }),
        applier_(setup_.around, volumes_, numbers_),
        hosts_({.sessions = setup_.sessions,
                .faults = setup_.host_faults,
                .host_of = std::bind_front(host_of, std::ref(setup_.around.exports))}) {}

  ~ClientImpl() override {
    ClientImpl::stop(0);
    executor_.stop();
  }

  Result<void> begin() {
    const Result<bool> loaded = file_.load(&desired_);
    if (!loaded) log::error("no desired state from disk", {{"error", loaded.error()}});
    applied_objects_ = held().objects;  // as on disk
    const Result<void> numbers = numbers_.load(*held().objects, now_ms() / 1000);
    if (!numbers)
      log::error("LUN numbers that were left are not known", {{"error", numbers.error()}});
    StreamCallbacks callbacks;
    callbacks.hello = [this] { return hello(); };
    callbacks.admit = [this](const wire::StreamWelcome& w) {
      return membership_.admit(system_of(held()), w);
    };
    callbacks.replaced = setup_.replaced;
    callbacks.connected = [this](const wire::StreamWelcome&) { connected(); };
    callbacks.received = [this](wire::ConnectResponse m) { received(std::move(m)); };
    callbacks.lost = [this](const std::string& why) { lost(why); };
    callbacks.heartbeat = [this] { return heartbeat(); };
    auto stream = Stream::create(setup_.stream, std::move(callbacks));
    if (!stream) return Error{stream.error()};
    stream_ = std::move(stream).value();
    if (desired_.held().version != 0) {
      executor_.post(applies(), [this] { apply_from_disk(); }, setup_.state_from_disk);
    }
    stream_->begin();
    every(kTick, reports("timers"), [this] {
      store_->tick();
      commits_.tick();
    });
    every(limits::kObserveSessions, reports("pools"), [this] { volumes_.pools().tick(); });
    every(limits::kStuckPoll, reports("media"), [this] { volumes_.review_media(); });
    every(limits::kObserveSessions, reports("sessions"), [this] { report_hosts(); });
    every(limits::kObserveSessions, applies(), [this] { tell_lost_peers(); });
    every(limits::kObserveSessions, reports("contact"), [this] {
      contact_.reached(setup_.peers());
      volumes_.review_contact();
    });
    every(setup_.observe_pools, reports("pools"), [this] { observe_all_pools(); });
    every(limits::kApplyAgain, applies(), [this] { apply_again(); });
    return {};
  }

  bool stop(Nanos limit) override {
    if (stopped_.exchange(true)) return true;
    const bool released = volumes_.release_all(limit);
    const bool quiet = !setup_.rbd || setup_.rbd->stop();
    if (stream_) stream_->stop();
    store_->stop();
    const bool ended = executor_.stop(limits::kControlStops);
    if (ended) saver_.last();  // else, as after a kill, the state on disk may lag
    return released && quiet && ended;
  }

  Result<void> accept_system(const std::string& system) override {
    const Result<void> confirmed = membership_.confirm(system);
    if (confirmed) stream_->reconnect("an administrator confirmed another system");
    return confirmed;
  }

  void peer_found(const wire::PeerObserved& observed) override {
    wire::ConnectRequest m;
    *m.mutable_peer_observed() = observed;
    stream_->observe(std::move(m));
  }

 private:
  // --- the stream

  wire::StreamHello hello() {
    wire::StreamHello hello = new_hello(setup_.gateway, self_, setup_.rbd != nullptr);
    const std::lock_guard lock(mutex_);
    desired_.forget_unfinished();
    hello.set_held_version(desired_.version());
    hello.set_held_digest(desired_.digest());
    const Snapshot& held = desired_.held();
    membership_.introduce(system_of(held), held.objects->count(wire::OBJECT_KIND_VOLUME), &hello);
    return hello;
  }

  void connected() {
    contact_.stream_opened();
    commits_.connected();
    executor_.post(applies(), [this] {
      for (const wire::VolumeObserved& observed : volumes_.observed()) {
        wire::ConnectRequest m;
        *m.mutable_volume_observed() = observed;
        stream_->observe(std::move(m));
      }
      for (const wire::PeerObserved& observed : setup_.peers()) peer_found(observed);
      if (applied_ != 0) acknowledge();
    });
    executor_.post(reports("sessions"), [this] { stream_->observe(hosts_.all()); });
    observe_all_pools();
  }

  void received(wire::ConnectResponse message) {
    switch (message.message_case()) {
      case wire::ConnectResponse::kUpdate:
        return take_update(std::move(*message.mutable_update()));
      case wire::ConnectResponse::kReservationOutcome:
        return store_->received(message.reservation_outcome());
      case wire::ConnectResponse::kReservationState:
        return store_->received(message.reservation_state());
      case wire::ConnectResponse::kRadosClientOutcome:
        return commits_.received(message.rados_client_outcome());
      case wire::ConnectResponse::kJob:
        // The update with the job's pool may not be applied yet.
        return executor_.post(applies(), [this, job = message.job()] { jobs_.submit(job); });
      case wire::ConnectResponse::kEvictSessions:
        return setup_.evict(
            {message.evict_sessions().tsihs().begin(), message.evict_sessions().tsihs().end()});
      default:
        return;  // a message of a later release
    }
  }

  void lost(const std::string& why) {
    contact_.stream_lost(boot_clock_now());
    store_->stream_lost(why);
    commits_.lost();
  }

  // --- desired state

  Snapshot held() {
    const std::lock_guard lock(mutex_);
    return desired_.held();
  }

  void take_update(wire::StreamUpdate update) {
    if (stopped_) return;
    Result<Desired::Taken> taken = Desired::Taken::kMore;
    {
      const std::lock_guard lock(mutex_);
      taken = desired_.take(std::move(update));
    }
    if (!taken) return stream_->reconnect(taken.error());
    if (taken.value() == Desired::Taken::kMore) return;
    // Only the newest state is applied, because it includes the earlier updates.
    if (!apply_waits_.exchange(true)) {
      executor_.post(applies(), [this] { apply(); });
    }
  }

  void apply() {
    apply_waits_ = false;
    const auto before = applied_objects_;
    apply_held();
    if (saved_first_ == 0 && !may_close_access(*before, *applied_objects_)) {
      acknowledge();
      return saver_.soon();
    }
    saved_first_ = applied_;
    saver_.at_once();
  }

  uint64_t save() {
    const Snapshot snapshot = held();
    // First: a state without a LUN must not be saved before its number is reserved.
    Result<void> saved = numbers_.save(now_ms() / 1000);
    if (saved) saved = file_.save(snapshot);
    if (!saved) log::error("desired state can't be kept", {{"error", saved.error()}});
    return snapshot.version;
  }

  void saved(uint64_t version) {
    if (saved_first_ == 0 || version < saved_first_) return;
    saved_first_ = 0;
    acknowledge();
  }

  // Runs only after a reachable control plane had time to answer. The state on disk may be old: it
  // may lack LUNs that hosts use, and admit hosts whose access was withdrawn.
  void apply_from_disk() {
    if (applied_ != 0) return;
    log::info("desired state from disk", {{"version", held().version}});
    apply_held();
  }

  void apply_held() {
    if (stopped_) return;
    Snapshot next = held();
    applied_ = next.version;
    applied_objects_ = next.objects;
    applier_.apply(std::move(next));
    // A Ceph pool connects at its first probe and gets no volumes before.
    observe_pools(volumes_.pools().take_new());
  }

  void apply_again() {
    if (applier_.refused().empty()) return;
    const auto before = applier_.refused();
    if (applier_.apply_again() != before) acknowledge();
  }

  // Acknowledges the applied state. A later update gets its own acknowledgement.
  void acknowledge() {
    if (saved_first_ != 0) return;
    wire::ConnectRequest m;
    m.mutable_ack()->set_version(applied_);
    for (const auto& [key, reason] : applier_.refused()) {
      wire::ObjectRefusal& refusal = *m.mutable_ack()->add_refused();
      *refusal.mutable_key() = to_wire(key);
      refusal.set_reason(reason);
    }
    stream_->observe(std::move(m));
  }

  // --- observed state

  void every(Nanos interval, const Executor::Strand& strand, std::function<void()> task) {
    auto run = [this, interval, strand, task = std::move(task)] {
      task();
      every(interval, strand, task);
    };
    executor_.post(strand, std::move(run), interval);
  }

  void report_hosts() {
    if (!stream_->connected()) return;
    if (auto changes = hosts_.changes()) stream_->observe(*std::move(changes));
    if (auto faults = hosts_.faults(boot_clock_now())) stream_->observe(*std::move(faults));
  }

  // Repeated while the peer is lost: a leader counts only reports that it received itself (R1).
  void tell_lost_peers() {
    if (!stream_->connected()) return;
    for (const wire::PeerObserved& observed : setup_.peers()) {
      if (observed.reach() != wire::PEER_REACH_CONNECTED) peer_found(observed);
    }
  }

  void observe_all_pools() { observe_pools(volumes_.pools().uids()); }
  void observe_pools(const std::vector<std::string>& uids) {
    if (stream_->connected()) prober_.probe(uids);
  }

  wire::StreamHeartbeat heartbeat() {
    wire::StreamHeartbeat beat;
    const Nanos now = boot_clock_now();
    beat.set_boot_time_ms(static_cast<uint64_t>(now / kMillisecond));
    const uint64_t busy = setup_.busy_nanos();
    const Nanos span = (now - std::exchange(beat_at_, now)) * setup_.around.reactors.count();
    const uint64_t share = (busy - std::exchange(beat_busy_, busy)) * 1000 /
                           static_cast<uint64_t>(std::max<Nanos>(span, 1));
    beat.set_busy_permille(static_cast<uint32_t>(std::min<uint64_t>(share, 1000)));
    for (const auto& unit : volumes_.units()) add_load(*unit, &beat);
    hosts_.add_to(&beat);
    return beat;
  }

  const ClientSetup setup_;
  Membership membership_;
  Contact contact_{boot_clock_now()};
  const DesiredFile file_;
  LunNumbers numbers_;
  const Holder self_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> apply_waits_{false};
  uint64_t applied_ = 0;      // version; this and the next two belong to the control strand
  uint64_t saved_first_ = 0;  // acknowledgements wait until this version is on disk; 0: none
  std::shared_ptr<const Objects> applied_objects_ = std::make_shared<const Objects>();
  Nanos beat_at_ = 0;  // used by the stream's second thread
  uint64_t beat_busy_ = 0;

  std::mutex mutex_;
  Desired desired_;

  std::unique_ptr<Stream> stream_;
  Executor executor_;
  ClientCommits commits_;
  const std::shared_ptr<StreamReservations> store_;
  Volumes volumes_;
  JobRunner jobs_;
  PoolProber prober_;
  Applier applier_;
  HostReports hosts_;
  DesiredSaver saver_{
      executor_, [this] { return save(); },
      [this](uint64_t version) { executor_.post(applies(), [this, version] { saved(version); }); }};
};

}  // namespace

Result<std::unique_ptr<Client>> Client::start(ClientSetup setup) {
  auto client = std::make_unique<ClientImpl>(std::move(setup));
  const Result<void> begun = client->begin();
  if (!begun) return Error{begun.error()};
  return std::unique_ptr<Client>(std::move(client));
}

}  // namespace sluice::control
