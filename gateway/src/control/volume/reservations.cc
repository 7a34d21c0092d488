#include "control/volume/reservations.h"

#include <future>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::control {
namespace {

constexpr const char* kNotOwner = "this gateway doesn't own the volume";

Loaded failed(std::string why) {
  Loaded loaded;
  loaded.why = std::move(why);
  return loaded;
}

Loaded parse(const std::string& volume, const wire::ReservationState& found) {
  Loaded loaded;
  loaded.generation = found.generation();
  if (found.generation() != 0 || !found.state().empty()) {
    Result<lun::ReservationState> state =
        lun::parse_reservations(found.state(), volume, "the stored reservations of " + volume);
    if (!state) return failed(state.error());
    loaded.state = std::move(state).value();
  }
  loaded.what = Loaded::What::kState;
  return loaded;
}

}  // namespace

// --- requests to the control plane

bool StreamReservations::ask(wire::ConnectRequest message, Nanos deadline, Answer answer) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_.size() >= limits::kMaxReservationCommits) return false;
    id = next_id_++;
    waiting_[id] = {deadline, true, std::move(answer)};
  }
  if (message.has_reservation_commit()) message.mutable_reservation_commit()->set_request_id(id);
  if (message.has_reservation_load()) message.mutable_reservation_load()->set_request_id(id);
  if (setup_.request(std::move(message))) return true;
  const std::lock_guard lock(mutex_);
  // If the entry is gone, the stream has just ended and stream_lost() has answered.
  return waiting_.erase(id) == 0;
}

void StreamReservations::answered(uint64_t id, wire::CommitResult result,
                                  const wire::ReservationState* state, const std::string& why) {
  Answer answer;
  {
    const std::lock_guard lock(mutex_);
    const auto at = waiting_.find(id);
    if (at == waiting_.end()) return;  // late: it was already answered as unknown
    answer = std::move(at->second.answer);
    waiting_.erase(at);
  }
  answer(result, state, why);
}

void StreamReservations::received(const wire::ReservationOutcome& outcome) {
  answered(outcome.request_id(), outcome.result(), nullptr, outcome.reason());
}

void StreamReservations::received(const wire::ReservationState& state) {
  answered(state.request_id(), state.result(), &state, "the control plane couldn't read them");
}

void StreamReservations::stream_lost(const std::string& why) {
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, waiting] : waiting_) {
      if (waiting.on_stream) ids.push_back(id);
    }
  }
  for (const uint64_t id : ids) {
    answered(id, wire::COMMIT_RESULT_UNSPECIFIED, nullptr, "the stream ended: " + why);
  }
}

void StreamReservations::tick() {
  std::vector<uint64_t> ids;
  const Nanos now = setup_.now();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, waiting] : waiting_) {
      if (now >= waiting.deadline) ids.push_back(id);
    }
  }
  for (const uint64_t id : ids) {
    answered(id, wire::COMMIT_RESULT_UNSPECIFIED, nullptr, "no answer in time");
  }
}

bool StreamReservations::send_commit(const std::string& volume, uint64_t epoch, uint64_t generation,
                                     const lun::ReservationState& state, Nanos deadline,
                                     Answer answer) {
  wire::ConnectRequest message;
  wire::ReservationCommit& commit = *message.mutable_reservation_commit();
  commit.set_volume_uid(volume);
  commit.set_epoch(epoch);
  commit.set_expected_generation(generation);
  commit.set_state(lun::format_reservations(volume, state));
  if (commit.state().size() > limits::kMaxReservationState) return false;
  return ask(std::move(message), deadline, std::move(answer));
}

// --- commits

void StreamReservations::post(const lun::StoreReply& reply, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) reply.reactors->post(reply.reactor, std::move(task));
}

void StreamReservations::commit(const std::string& unit_uuid, const lun::ReservationState& state,
                                lun::StoreReply reply, CommitDone done) {
  const auto respond = [this, reply, done = std::move(done)](lun::CommitOutcome outcome,
                                                             const std::string& why) {
    post(reply, [done, outcome, why] { done(outcome, why); });
  };
  const std::optional<Record> owned = record_of(unit_uuid);
  if (!owned) return respond(lun::CommitOutcome::kNotCommitted, kNotOwner);
  const uint64_t epoch = owned->epoch;
  const uint64_t generation = owned->generation;
  const Nanos deadline = setup_.now() + limits::kReservationStoreBound;
  const auto answer = [this, unit_uuid, epoch, generation, state, deadline, respond](
                          wire::CommitResult result, const wire::ReservationState*,
                          const std::string& why) {
    switch (result) {
      case wire::COMMIT_RESULT_COMMITTED:
        return written_too(
            unit_uuid, epoch, generation + 1, state, deadline,
            [respond](const Result<void>& written) {
              respond(written ? lun::CommitOutcome::kCommitted : lun::CommitOutcome::kUnknown,
                      written.error());
            });
      case wire::COMMIT_RESULT_NOT_COMMITTED:
        return respond(lun::CommitOutcome::kNotCommitted, why);
      case wire::COMMIT_RESULT_FENCED:
        setup_.fenced(unit_uuid);
        return respond(lun::CommitOutcome::kUnknown, "the volume has a newer epoch");
      case wire::COMMIT_RESULT_CONFLICT:
        return respond(lun::CommitOutcome::kUnknown, "another generation was stored meanwhile");
      default:
        set_straggler(unit_uuid, epoch, true);
        return respond(lun::CommitOutcome::kUnknown, why);
    }
  };
  make_room(unit_uuid, epoch, state, deadline, respond, [=, this] {
    if (!send_commit(unit_uuid, epoch, generation, state, deadline, answer)) {
      respond(lun::CommitOutcome::kNotCommitted, "there is no stream to the control plane");
    }
  });
}

// Before anything is sent, so a failure is certainly not stored. Neither is called twice, and
// `made` is not called after the time limit.
void StreamReservations::make_room(
    const std::string& volume, uint64_t epoch, const lun::ReservationState& state, Nanos deadline,
    std::function<void(lun::CommitOutcome failure, const std::string& why)> failed,
    std::function<void()> made) {
  Owned owned;
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto at = owned_.find(volume);
    if (at != owned_.end() && at->second.record.epoch == epoch) owned = at->second;
    if (owned.storage && owned.storage->reserves_room()) {
      id = next_id_++;
      waiting_[id] = {deadline, false,
                      [failed, made](wire::CommitResult result, const wire::ReservationState*,
                                     const std::string& why) {
                        if (result == wire::COMMIT_RESULT_COMMITTED) return made();
                        failed(result == wire::COMMIT_RESULT_NOT_COMMITTED
                                   ? lun::CommitOutcome::kNoRoom
                                   : lun::CommitOutcome::kNotCommitted,
                               why);
                      }};
    }
  }
  if (!owned.storage) return failed(lun::CommitOutcome::kNotCommitted, kNotOwner);
  if (id == 0) return made();
  owned.record.reservations = state;
  setup_.executor.post({owned.group, "record " + volume}, [this, id, owned] {
    const Result<Room> room = owned.storage->reserve(owned.record);
    if (!room) return answered(id, wire::COMMIT_RESULT_UNSPECIFIED, nullptr, room.error());
    const bool is_made = room.value() == Room::kMade;
    answered(id, is_made ? wire::COMMIT_RESULT_COMMITTED : wire::COMMIT_RESULT_NOT_COMMITTED,
             nullptr, is_made ? "" : "the pool is full: free space in it or add to it");
  });
}

// The control plane stored `generation`: writes it beside the data within the same time limit.
void StreamReservations::written_too(const std::string& volume, uint64_t epoch, uint64_t generation,
                                     const lun::ReservationState& state, Nanos deadline,
                                     std::function<void(Result<void>)> done) {
  uint64_t id = 0;
  Executor::Strand strand{"records without an owner", volume};
  {
    const std::lock_guard lock(mutex_);
    const auto at = owned_.find(volume);
    if (at != owned_.end()) strand = {at->second.group, "record " + volume};
    if (at != owned_.end() && at->second.record.epoch == epoch) {
      at->second.record.generation = generation;
      at->second.record.reservations = state;
    }
    id = next_id_++;
    waiting_[id] = {
        deadline, false,
        [done = std::move(done)](wire::CommitResult result, const wire::ReservationState*,
                                 const std::string& why) {
          done(result == wire::COMMIT_RESULT_COMMITTED ? Result<void>() : Result<void>(Error{why}));
        }};
  }
  setup_.executor.post(strand, [this, id, volume, epoch, generation, state] {
    write(volume, epoch, generation, state, [this, id](const Result<void>& written) {
      answered(id, written ? wire::COMMIT_RESULT_COMMITTED : wire::COMMIT_RESULT_UNSPECIFIED,
               nullptr, written.error());
    });
  });
}

void StreamReservations::write(const std::string& volume, uint64_t epoch, uint64_t generation,
                               const lun::ReservationState& state,
                               std::function<void(Result<void>)> done) {
  Record next;
  std::shared_ptr<VolumeStorage> storage;
  {
    const std::lock_guard lock(mutex_);
    const auto at = owned_.find(volume);
    if (at != owned_.end() && at->second.record.epoch == epoch) {
      next = at->second.record;
      storage = at->second.storage;
    }
  }
  if (!storage) return done(Error{kNotOwner});
  next.generation = generation;
  next.reservations = state;
  storage->update(next, [this, volume, epoch, next, done = std::move(done)](Result<void> written) {
    if (written) {
      const std::lock_guard lock(mutex_);
      const auto at = owned_.find(volume);
      const bool newest = at != owned_.end() && at->second.record.epoch == epoch &&
                          at->second.record.generation <= next.generation;
      if (newest) at->second.record = next;
    }
    done(std::move(written));
  });
}

// --- reads

void StreamReservations::read(const std::string& unit_uuid, lun::StoreReply reply, ReadDone done) {
  const auto respond = [this, reply,
                        done = std::move(done)](const Result<lun::ReservationState>& s) {
    post(reply, [done, s] { done(s); });
  };
  const std::optional<Record> owned = record_of(unit_uuid);
  if (!owned) return respond(Error{kNotOwner});
  const uint64_t epoch = owned->epoch;
  const Nanos deadline = setup_.now() + limits::kReservationStoreBound;
  load_until(*owned, epoch, has_straggler(unit_uuid), deadline,
             [this, unit_uuid, epoch, deadline, respond](Loaded loaded) {
               if (loaded.what == Loaded::What::kFenced) setup_.fenced(unit_uuid);
               if (loaded.what != Loaded::What::kState) return respond(Error{loaded.why});
               set_straggler(unit_uuid, epoch, false);
               written_too(unit_uuid, epoch, loaded.generation, loaded.state, deadline,
                           [respond, state = loaded.state](const Result<void>& written) {
                             if (!written) return respond(Error{written.error()});
                             respond(state);
                           });
             });
}

void StreamReservations::load_for(const Record& beside, uint64_t epoch, bool settle,
                                  std::function<void(Loaded)> done) {
  load_until(beside, epoch, settle, setup_.now() + limits::kReservationStoreBound, std::move(done));
}

void StreamReservations::load_until(const Record& beside, uint64_t epoch, bool settle_it,
                                    Nanos deadline, std::function<void(Loaded)> done) {
  wire::ConnectRequest message;
  message.mutable_reservation_load()->set_volume_uid(beside.volume);
  message.mutable_reservation_load()->set_epoch(epoch);
  const auto answer = [this, beside, epoch, settle_it, deadline, done](
                          wire::CommitResult result, const wire::ReservationState* found,
                          const std::string& why) {
    if (result == wire::COMMIT_RESULT_FENCED) {
      Loaded fenced = failed("the volume has a newer epoch");
      fenced.what = Loaded::What::kFenced;
      return done(std::move(fenced));
    }
    if (result != wire::COMMIT_RESULT_COMMITTED || found == nullptr) return done(failed(why));
    Loaded loaded = parse(beside.volume, *found);
    const bool behind =
        loaded.what == Loaded::What::kState && loaded.generation < beside.generation;
    if (behind) {
      log::warning("the control plane has older reservations than this gateway: it is given them",
                   {{"volume", beside.volume},
                    {"generation", beside.generation},
                    {"stored", loaded.generation}});
      loaded.state = beside.reservations;
    }
    if (loaded.what != Loaded::What::kState || !(settle_it || behind)) {
      return done(std::move(loaded));
    }
    settle(beside, epoch, std::move(loaded), deadline, done);
  };
  if (!ask(std::move(message), deadline, answer)) {
    done(failed("there is no stream to the control plane"));
  }
}

// Stores the same state as the next generation, so that a commit of an older one is rejected.
void StreamReservations::settle(const Record& beside, uint64_t epoch, Loaded loaded, Nanos deadline,
                                std::function<void(Loaded)> done) {
  const auto answer = [this, beside, epoch, loaded, deadline, done](wire::CommitResult result,
                                                                    const wire::ReservationState*,
                                                                    const std::string& why) {
    Loaded settled = loaded;
    switch (result) {
      case wire::COMMIT_RESULT_COMMITTED:
        ++settled.generation;
        return done(std::move(settled));
      case wire::COMMIT_RESULT_CONFLICT:  // the late commit arrived first: it is in effect
        if (setup_.now() >= deadline) return done(failed("the reservations keep changing"));
        return load_until(beside, epoch, true, deadline, done);
      case wire::COMMIT_RESULT_FENCED:
        settled = failed("the volume has a newer epoch");
        settled.what = Loaded::What::kFenced;
        return done(std::move(settled));
      default:
        return done(failed(why));
    }
  };
  if (!send_commit(beside.volume, epoch, loaded.generation, loaded.state, deadline, answer)) {
    done(failed("there is no stream to the control plane"));
  }
}

Result<lun::ReservationState> StreamReservations::load(const std::string& unit_uuid) {
  const std::optional<Record> owned = record_of(unit_uuid);
  if (!owned) return Error{kNotOwner};
  auto found = std::make_shared<std::promise<Loaded>>();
  load_for(*owned, owned->epoch, has_straggler(unit_uuid),
           [found](Loaded loaded) { found->set_value(std::move(loaded)); });
  Loaded loaded = found->get_future().get();
  if (loaded.what != Loaded::What::kState) return Error{loaded.why};
  return std::move(loaded.state);
}

// --- ownership

void StreamReservations::open(Record record, std::shared_ptr<VolumeStorage> storage,
                              std::string group) {
  const std::lock_guard lock(mutex_);
  std::string volume = record.volume;
  owned_.insert_or_assign(std::move(volume),
                          Owned{std::move(record), std::move(storage), std::move(group)});
}

void StreamReservations::close(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  owned_.erase(volume);
}

std::optional<Record> StreamReservations::record_of(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  const auto at = owned_.find(volume);
  if (at == owned_.end()) return std::nullopt;
  return at->second.record;
}

bool StreamReservations::has_straggler(const std::string& volume) {
  const std::lock_guard lock(mutex_);
  const auto at = owned_.find(volume);
  return at != owned_.end() && at->second.straggler;
}

void StreamReservations::set_straggler(const std::string& volume, uint64_t epoch, bool straggler) {
  const std::lock_guard lock(mutex_);
  const auto at = owned_.find(volume);
  if (at != owned_.end() && at->second.record.epoch == epoch) at->second.straggler = straggler;
}

void StreamReservations::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_.clear();
}

}  // namespace sluice::control
