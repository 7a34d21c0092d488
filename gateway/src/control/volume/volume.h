// One volume of this gateway, and what makes its role true (DESIGN R1, R2, R4, R7). A state machine
// without threads or clock of its own: turn() does what can be done now and says when to come back.
//
//   ACQUIRING: lock -> LOCKED
//   OWNER: lock -> record -> reservations -> claim -> serve -> SERVING
//   RELEASING, another owner in this epoch, or a yielded lock: release -> RELEASED
//   a newer epoch, or the lock is lost: fence -> FENCED         anything that can't be done ->
//   FAILED
//
// Closed is told only once the place is at rest: the lock is free by then.
//
// Final for the epoch is what closes the volume or fails to open it as owner: it is not served
// again in that epoch, whatever the role becomes, and the report is repeated instead (the rule
// RELEASE_IS_FINAL of controlplane/model-check). RECORD_WINS: an order older than the epoch
// recorded beside the data is refused, under the lock.
//
// Threads: turn() runs on one at a time; the other members on any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "control/volume/place.h"
#include "control/wire.h"
#include "unit/medium_health.h"
#include "unit/role.h"

namespace sluice::control {

// The volume's unit (unit/ownership.h). Callbacks come on any thread.
class UnitDoor {
 public:
  virtual ~UnitDoor() = default;
  virtual void serve(std::unique_ptr<backend::Backend> backend, lun::ReservationState state,
                     uint64_t epoch) = 0;
  virtual void follow(const lun::Role& role) = 0;
  virtual void release(std::function<void(bool flushed)> done) = 0;
  virtual void fence(std::function<void()> done) = 0;
  // Size, write cache and QoS as `volume` has them; `serving` says whether there is a backend.
  virtual Result<void> shape(const wire::DesiredVolume& volume, bool serving) = 0;
  // Of the backend that is served, as of the last health check.
  virtual lun::MediumHealth medium_health() const { return {}; }
};

struct Loaded {
  enum class What : uint8_t { kState, kFenced, kFailed } what = What::kFailed;
  lun::ReservationState state;
  uint64_t generation = 0;
  std::string why;
};

// What a volume asks of the rest of the gateway.
class VolumeServices {
 public:
  virtual ~VolumeServices() = default;
  // Error: the pool can't be used, and why. `wake`: of the place.
  virtual Result<std::shared_ptr<Place>> place(const wire::DesiredVolume& volume,
                                               std::function<void()> wake) = 0;
  // Linearizable. `beside`: the record of the data; where it is newer than what is stored, it is
  // stored, and loaded. `settle`: a commit of this epoch may be on its way from an earlier life.
  virtual void load(const Record& beside, uint64_t epoch, bool settle,
                    std::function<void(Loaded)> done) = 0;
  // From here on commits are taken; each is written beside the data, too, by `update`.
  virtual void open_commits(Record record, std::shared_ptr<Place> place) = 0;
  virtual void close_commits(const std::string& volume) = 0;
  virtual void report(const wire::VolumeObserved& observed) = 0;
};

class Volume : public std::enable_shared_from_this<Volume> {
 public:
  static constexpr Nanos kNever = -1;
  // `wake`: turn() has something to do. Made by make_shared: answers may come after its end.
  Volume(std::string uid, uint16_t self, std::unique_ptr<UnitDoor> unit, VolumeServices& services,
         std::function<void()> wake);

  // Error: why this order isn't followed.
  Result<void> order(const wire::DesiredVolume& volume);
  // No longer exported here: lets go of it. `gone` runs in the turn that has.
  void remove(std::function<void()> gone);
  // Somebody knows of a newer epoch (R1, R4).
  void saw_epoch(uint64_t epoch);
  // Reports a served volume again if the health of its medium changed. Call it about once a second.
  void review_medium();
  // Another gateway of this node asks for the lock.
  HolderAnswer asked(uint64_t order);
  // What was last reported; nullopt: nothing there is to report.
  std::optional<wire::VolumeObserved> observed() const;
  // Why size, cache or QoS could not be made what was asked for; empty: they are.
  std::string problem() const;

  // kNever: at the next wake.
  Nanos turn(Nanos now);

 private:
  // What came from outside since the last turn.
  struct Mail {
    std::optional<wire::DesiredVolume> order;
    std::function<void()> gone;
    std::optional<uint64_t> yield_to;
    std::optional<bool> released;  // whether it was flushed
    bool fenced = false;
    std::optional<Loaded> loaded;
    uint64_t loaded_epoch = 0;
  };
  // kClosing: until the place is at rest.
  enum class Phase : uint8_t { kIdle, kServing, kReleasing, kFencing, kClosing };
  enum class Lock : uint8_t { kLocked, kWaiting, kPending, kFailed };
  // What is told when the place is at rest.
  struct Ending {
    wire::VolumeState state{};
    uint64_t epoch = 0;
    std::string why;
  };

  void take(Mail mail);
  Nanos turn_serving();
  Nanos turn_idle(Nanos now);
  Nanos turn_acquiring(Nanos now);
  Nanos turn_owner(Nanos now);
  void begin_release();
  void begin_fence(const std::string& why);
  Nanos turn_closing(Nanos now);
  void ended(wire::VolumeState state, const std::string& why);
  void say_closed();
  void shape_served();
  int64_t capacity() const;  // as told to the control plane
  void note_problem(const Result<void>& done);
  bool medium_changed() const;  // since the last report of a served volume

  Lock try_lock(Nanos now, std::string* problem);
  Lock taken(std::unique_ptr<backend::Backend> backend, std::string* problem);
  // False: the order is older than the holder's.
  bool ask_for_it(Nanos now, std::string* problem);
  void unlock();
  // False: the place is on its way to rest, and a turn comes when it is there.
  bool unlocked();
  Nanos serve_with(Loaded loaded);
  void begin_claim(uint64_t generation, lun::ReservationState state);
  Nanos claim_and_serve();
  void fail(const std::string& why);
  void close_epoch(wire::VolumeState state, const std::string& why);

  void follow(lun::Standing standing);
  void follow_owner();
  void report(wire::VolumeState state, uint64_t epoch, const std::string& why);
  // Brings a turn about, from wherever it is called.
  std::function<void()> waker();
  template <class Change>
  void mail(Change change);
  // mail(), from a callback that may outlive this.
  template <class Change>
  static void mail_to(const std::weak_ptr<Volume>& volume, Change change);

  const std::string uid_;
  const uint16_t self_;
  const std::unique_ptr<UnitDoor> unit_;
  VolumeServices& services_;
  const std::function<void()> wake_;

  // --- the turn's own
  bool ordered_ = false;
  wire::DesiredVolume order_;
  std::function<void()> gone_;
  Phase phase_ = Phase::kIdle;
  uint64_t serving_epoch_ = 0;
  uint64_t closed_epoch_ = 0;  // the last that this volume was closed or not opened in
  std::optional<uint64_t> yielded_to_;
  std::optional<lun::Role> role_;
  std::shared_ptr<Place> place_;
  std::unique_ptr<backend::Backend> backend_;  // with the lock, before it serves
  std::optional<Record> record_;               // as found under the lock
  std::optional<Record> claim_;                // on its way to be this
  std::optional<Ending> ending_;
  std::string fence_reason_;
  bool growing_ = false;  // the place is at it
  bool loading_ = false;
  std::optional<Loaded> loaded_;
  Nanos waits_since_ = 0;
  Nanos ask_at_ = 0;
  Nanos unanswered_since_ = 0;  // by the lock's holder; 0: it has answered last, or wasn't asked
  Nanos poll_ = 0;
  uint64_t failed_order_ = 0;  // ACQUIRING, and reported

  // --- everybody's
  mutable std::mutex mutex_;
  Mail mail_;
  uint64_t newest_order_ = 0;
  uint64_t newest_epoch_ = 0;
  uint64_t acting_on_ = 0;  // order of what holds the lock
  bool holds_ = false;
  std::optional<wire::VolumeObserved> observed_;
  std::string problem_;
};

}  // namespace sluice::control
