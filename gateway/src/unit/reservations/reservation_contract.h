// Stores a unit's reservation state durably: the contract between PERSISTENT RESERVE OUT and a
// store. The store is a directory of files (reservation_store.h), or etcd, through the control
// plane, if several gateways share a volume (DESIGN R8).
//
// A store guarantees:
//
// - Asynchronous: commit() and read() only start an operation and wait for neither disk nor
//   network. Any thread may call them. `done` runs exactly once, as a task posted to the reactor
//   that `reply` names, never within the call and on no other thread.
// - Four outcomes (DESIGN R3). kCommitted: the whole state is durable even if a process dies now;
//   a later read() or restart finds it, or a newer state. kNotCommitted: it provably is not and
//   never will be stored; no attempt is still in progress. kNoRoom: as kNotCommitted, because the
//   storage has no room for a state of that size. kUnknown: everything else, including a
//   timeout after the request was sent. In doubt the outcome is kUnknown: that costs a dropped
//   nexus, while a wrong kNotCommitted costs data.
// - read() is linearizable and final. It returns the state in effect, regardless of APTPL and with
//   PRgeneration. Before it returns, that state is durable, and a commit whose outcome was kUnknown
//   either is part of it or never will be (etcd: a compare-and-swap on the key's revision that
//   changes nothing; the file: the record is written again). An error says nothing about the state;
//   the caller asks again before its next decision.
// - Order: calls for one unit take effect in the order of the calls. The unit has one of them in
//   flight at a time.
// - Bounded number: beyond its limit a store immediately answers kNotCommitted, or an error,
//   through `done`. Bounded time: every call is answered within limits::kReservationStoreBound, as
//   kUnknown if the outcome is not known by then.
// - load() is called when a unit starts, before its first command; it may block. It returns read()
//   after a simulated power loss, because a restart of every gateway is one: APTPL decides (SPC-5
//   §5.14.5). An untrustworthy record is an error, never an empty state.
// - stop(): the reactors are about to end. Nothing is posted after it returns. The caller ensures
//   that no commit is in flight, since each belongs to a command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/reactors.h"
#include "base/result.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {

enum class CommitOutcome : uint8_t { kCommitted, kNotCommitted, kNoRoom, kUnknown };

// The destination of the answer.
struct StoreReply {
  Reactors* reactors = nullptr;
  unsigned reactor = 0;
};

class ReservationStore {
 public:
  // `error` is for the log if the outcome is not kCommitted.
  using CommitDone = std::function<void(CommitOutcome outcome, const std::string& error)>;
  using ReadDone = std::function<void(Result<ReservationState> state)>;

  virtual ~ReservationStore() = default;
  virtual void commit(const std::string& unit_uuid, const ReservationState& state, StoreReply reply,
                      CommitDone done) = 0;
  virtual void read(const std::string& unit_uuid, StoreReply reply, ReadDone done) = 0;
  virtual Result<ReservationState> load(const std::string& unit_uuid) = 0;
  virtual void stop() = 0;
};

}  // namespace sluice::lun
