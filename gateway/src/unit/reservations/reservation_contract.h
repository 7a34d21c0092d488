// Where a unit's reservation state is made durable: the contract between PERSISTENT RESERVE OUT and
// whatever keeps it. A directory of files here (reservation_store.h); etcd, by way of the control
// plane, where several gateways share a volume (DESIGN R8).
//
// What a store promises:
//
// - Asynchronous. commit() and read() only start something: they wait for no disk and no network.
//   Any thread may call. `done` runs exactly once, as a task posted to the reactor that `reply`
//   names, never inside the call and on no other thread.
// - Three outcomes (DESIGN R3). kCommitted: the whole state is durable, whoever dies now. What a
//   later read() or restart finds is it, or newer. kNotCommitted: provably not, now or ever: no
//   attempt is still on its way that could bring it up later. kUnknown: all the rest, a timeout
//   after the request left included. When in doubt it is kUnknown: the price is a dropped nexus,
//   that of a wrong kNotCommitted is data.
// - read() is linearizable and final. It answers the state in force, live: APTPL or not, with
//   PRgeneration. Before it answers, that state is durable, and a commit whose outcome was
//   kUnknown either is part of it or never will be (etcd: a compare-and-swap on the key's revision
//   that changes nothing; the file: the record written once more). An error says nothing about the
//   state; the caller asks again before its next decision.
// - Order. Calls for one unit take effect in the order they were made. The unit has one of them in
//   flight at a time.
// - Bounded in number: beyond its bound a store answers kNotCommitted, or an error, at once, by the
//   same road. Bounded in time: every call is answered within limits::kReservationStoreBound, as
//   kUnknown if it can't be said by then.
// - load() is for a unit that comes up, before its first command; it may block. What it answers is
//   read() after the power loss that a restart of every gateway is: APTPL decides (SPC-5
//   §5.14.5). A record that can't be trusted is an error, never an empty state.
// - stop(): the reactors are about to go. Nothing is posted any more once it returns; no commit is
//   in flight by then, since each belongs to a command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/reactors.h"
#include "base/result.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {

enum class CommitOutcome : uint8_t { kCommitted, kNotCommitted, kUnknown };

// Where the answer goes.
struct StoreReply {
  Reactors* reactors = nullptr;
  unsigned reactor = 0;
};

class ReservationStore {
 public:
  // `error` is for the log when the outcome isn't kCommitted.
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
