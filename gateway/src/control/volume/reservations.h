// Persistent reservations of a cluster's volumes: committed by the control plane (compare-and-swap
// on epoch and generation, DESIGN R8), then written beside the data, then GOOD. One store serves
// all units; the key is the volume's uid.
//
//   kCommitted      both are durable
//   kNotCommitted   there was no stream to send it by, or the control plane says that it isn't
//   kUnknown        all the rest: the stream ended or the bound passed meanwhile, the record could
//                   not be written, another generation was stored. The unit reads before it
//                   decides.
//
// read() loads and, where a commit of ours may still be on its way, stores what it found once more
// as the next generation, so that the straggler can't be stored after it (reservation_contract.h).
// What is known here, or written beside the data, may be newer than what is stored: the store was
// put back in time (a restore). Then it is stored as the next generation, too, before anybody goes
// by it: the record wins over any older snapshot (DESIGN R2), for every owner to come.
//
// Threads: as the contract says; records are written on `turns`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "control/volume/turns.h"
#include "control/volume/volume.h"
#include "control/wire.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::control {

class StreamReservations final : public lun::ReservationStore {
 public:
  struct Setup {
    std::function<bool(wire::ConnectRequest)> request;  // Stream::request
    std::function<void(const std::string& volume)> fenced;
    Turns& turns;
    std::function<Nanos()> now = boot_time;
  };
  explicit StreamReservations(Setup setup) : setup_(std::move(setup)) {}

  // --- lun::ReservationStore
  void commit(const std::string& unit_uuid, const lun::ReservationState& state,
              lun::StoreReply reply, CommitDone done) override;
  void read(const std::string& unit_uuid, lun::StoreReply reply, ReadDone done) override;
  // Blocks for limits::kReservationStoreBound at most; of the epoch opened last.
  Result<lun::ReservationState> load(const std::string& unit_uuid) override;
  void stop() override;

  // --- Volume's
  void open(Record record, std::shared_ptr<Place> place);
  void close(const std::string& volume);
  // `done` comes on any thread, once.
  void load_for(const Record& beside, uint64_t epoch, bool settle,
                std::function<void(Loaded)> done);

  // --- the stream's
  void received(const wire::ReservationOutcome& outcome);
  void received(const wire::ReservationState& state);
  void stream_lost(const std::string& why);
  void tick();  // a few times a second: what is overdue is answered

 private:
  // A volume that this gateway owns.
  struct Owned {
    Record record;
    std::shared_ptr<Place> place;
    bool straggler = false;  // a commit whose end isn't known
  };
  using Answer = std::function<void(wire::CommitResult, const wire::ReservationState*,
                                    const std::string& why)>;
  struct Waiting {
    Nanos deadline = 0;
    bool on_stream = false;  // else on the disk
    Answer answer;
  };

  // Calls `answer` once: with UNSPECIFIED where nothing is known. False: provably not sent, and
  // `answer` isn't called.
  bool ask(wire::ConnectRequest message, Nanos deadline, Answer answer);
  void answered(uint64_t id, wire::CommitResult result, const wire::ReservationState* state,
                const std::string& why);
  bool send_commit(const std::string& volume, uint64_t epoch, uint64_t generation,
                   const lun::ReservationState& state, Nanos deadline, Answer answer);
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
