// Persistent reservations of a cluster's volumes. A commit makes room for the record beside the
// data. Then it goes to the control plane (compare-and-swap on epoch and generation, DESIGN R8),
// then to the record, and the command ends with GOOD. So the next owner can write what the control
// plane has stored, also in a full pool. One store serves all units; the key is the volume's uid.
//
// - kCommitted: both copies are durable.
// - kNotCommitted: there was no stream to send it, or the control plane rejected it.
// - kNoRoom: the pool has no room for the record. Nothing was sent.
// - kUnknown: the stream ended, the time limit passed, the record could not be written, or another
//   generation was stored. The unit reads before it decides.
//
// read() loads the state. If an earlier commit may still arrive, read() stores the loaded state
// again as the next generation, so that the late commit is rejected (reservation_contract.h). The
// state known here or beside the data may be newer than the stored one, because the store was
// restored from a backup. Then read() stores the newer state as the next generation before any unit
// uses it: the record takes precedence over an older snapshot (DESIGN R2).
//
// Threads: as the contract says; records are written on `executor`, in the group of the storage.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/boot_clock.h"
#include "base/executor.h"
#include "control/volume/volume_services.h"
#include "control/wire.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::control {

class StreamReservations final : public lun::ReservationStore {
 public:
  struct Setup {
    std::function<bool(wire::ConnectRequest)> request;  // Stream::request
    std::function<void(const std::string& volume)> fenced;
    Executor& executor;
    std::function<Nanos()> now = boot_clock_now;
  };
  explicit StreamReservations(Setup setup) : setup_(std::move(setup)) {}

  // --- lun::ReservationStore
  void commit(const std::string& unit_uuid, const lun::ReservationState& state,
              lun::StoreReply reply, CommitDone done) override;
  void read(const std::string& unit_uuid, lun::StoreReply reply, ReadDone done) override;
  // Blocks for at most limits::kReservationStoreBound. Uses the epoch that was opened last.
  Result<lun::ReservationState> load(const std::string& unit_uuid) override;
  void stop() override;

  // --- called by Volume
  // `group`: of the tasks that may wait for the storage.
  void open(Record record, std::shared_ptr<VolumeStorage> storage, std::string group);
  void close(const std::string& volume);
  // `done` runs once, on any thread.
  void load_for(const Record& beside, uint64_t epoch, bool settle,
                std::function<void(Loaded)> done);

  // --- called for the stream
  void received(const wire::ReservationOutcome& outcome);
  void received(const wire::ReservationState& state);
  void stream_lost(const std::string& why);
  void tick();  // call it a few times a second: answers overdue requests

 private:
  // A volume that this gateway owns.
  struct Owned {
    Record record;
    std::shared_ptr<VolumeStorage> storage;
    std::string group;       // of the executor
    bool straggler = false;  // a commit whose result is unknown
  };
  using Answer = std::function<void(wire::CommitResult, const wire::ReservationState*,
                                    const std::string& why)>;
  struct Waiting {
    Nanos deadline = 0;
    bool on_stream = false;  // true: waits for the stream; false: waits for the disk
    Answer answer;
  };

  // Calls `answer` once; UNSPECIFIED if the result is unknown. False: the message was not sent, and
  // `answer` is not called.
  bool ask(wire::ConnectRequest message, Nanos deadline, Answer answer);
  void answered(uint64_t id, wire::CommitResult result, const wire::ReservationState* state,
                const std::string& why);
  bool send_commit(const std::string& volume, uint64_t epoch, uint64_t generation,
                   const lun::ReservationState& state, Nanos deadline, Answer answer);
  void make_room(const std::string& volume, uint64_t epoch, const lun::ReservationState& state,
                 Nanos deadline,
                 std::function<void(lun::CommitOutcome failure, const std::string& why)> failed,
                 std::function<void()> made);
  void written_too(const std::string& volume, uint64_t epoch, uint64_t generation,
                   const lun::ReservationState& state, Nanos deadline,
                   std::function<void(Result<void>)> done);
  void write(const std::string& volume, uint64_t epoch, uint64_t generation,
             const lun::ReservationState& state, std::function<void(Result<void>)> done);
  void settle(const Record& beside, uint64_t epoch, Loaded loaded, Nanos deadline,
              std::function<void(Loaded)> done);
  void load_until(const Record& beside, uint64_t epoch, bool settle, Nanos deadline,
                  std::function<void(Loaded)> done);
  std::optional<Record> record_of(const std::string& volume);
  bool has_straggler(const std::string& volume);
  void set_straggler(const std::string& volume, uint64_t epoch, bool straggler);
  void post(const lun::StoreReply& reply, std::function<void()> task);

  const Setup setup_;
  std::mutex mutex_;
  std::map<std::string, Owned> owned_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_id_ = 1;
  bool stopped_ = false;
};

}  // namespace sluice::control
