// What a command knows about its origin: its I_T nexus, and its I_T_L nexus with the unit.
//
// Threads: the nexus's reactor, unless a line says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "commands/copies/copy_records.h"
#include "scsi/identity.h"
#include "unit/attached_nexus.h"
#include "unit/nexus_id.h"
#include "unit/reactor_context.h"
#include "unit/reservations/reservation_rights.h"
#include "unit/target_port.h"

namespace sluice::lun {

class TokenStore;
class Unit;
struct Command;

// Limits the commands that a nexus has at stuck units (iscsi/stuck_share.h sets it). Each admission
// counts until the next count of its session.
struct StuckAdmission {
  uint32_t limit = UINT32_MAX;
  uint32_t counted = 0;

  bool admit() {
    if (counted >= limit) return false;
    ++counted;
    return true;
  }
};

// An I_T nexus. Commands that report on the target, and third-party copies, call the virtual
// functions; READ and WRITE call none.
class NexusContext {
 public:
  NexusContext(NexusId id, const ReactorContext& context) : id_(std::move(id)), context_(context) {}
  virtual ~NexusContext() = default;
  NexusContext(const NexusContext&) = delete;
  NexusContext& operator=(const NexusContext&) = delete;

  const NexusId& id() const { return id_; }                           // any thread
  const ReactorContext& reactor_context() const { return context_; }  // any thread
  CopyRecords& copies() { return copies_; }  // of this nexus's third-party copies
  bool closed() const { return closed_; }
  // The nexus came in through the forwarding port. Any thread.
  bool forwarded() const { return forwarded_; }
  // Since when the host has had this nexus, here or at the gateway to which it is logged in (on the
  // clock of *reactor_context().now). For a forwarded nexus it may be earlier than the true time,
  // never later. Any thread.
  Nanos host_since() const { return host_since_; }

  // --- its target
  virtual scsi::PortIdentity port() const = 0;  // the port that received the command
  // All known ports of the path set, at least port().
  virtual std::vector<TargetPort> target_ports() const = 0;
  virtual std::vector<NexusId> nexuses_of_target() const = 0;
  virtual TokenStore& tokens() const = 0;
  // The unit of the target that a CSCD's designation descriptor names; nullptr: none.
  virtual std::shared_ptr<Unit> unit_by_designator(ByteView designator) const = 0;

  // --- its LUNs
  virtual std::vector<uint64_t> lun_numbers() const = 0;  // of all LUNs, sorted
  // Removes 3F/0E from all LUNs, because the host has read the inventory.
  virtual void inventory_reported() = 0;
  virtual void use_luns_of(const Unit& unit) = 0;  // attaches every LUN that maps the unit
  // Whether a LUN that maps `unit` and has been used is read-only.
  virtual bool is_read_only(const Unit& unit) const = 0;

  // Calls `go_on` once, at the next tick or when the nexus closes; for a command that waits for
  // bandwidth. At most limits::kCopyChunksInFlight calls per command.
  virtual void after_tick(std::function<void()> go_on) = 0;

  // Number of waiting commands in all task sets: the sum of CommandContext::held.
  uint32_t held = 0;
  // A command was aborted while the backend had it, and tick() has to check for how long.
  bool aborting = false;
  StuckAdmission stuck_admission;
  // Set by the transport: ends its session as lost, without further answers (DESIGN R4). `why` is
  // one clause for the log. Runs on this nexus's reactor, never after close().
  std::function<void(std::string why)> drop;

 protected:
  const NexusId id_;
  const ReactorContext context_;
  CopyRecords copies_;
  bool closed_ = false;
  bool forwarded_ = false;
  Nanos host_since_ = 0;
};

// An I_T_L nexus. The fast path reads one atomic here (AttachedNexus::attention); the queue of unit
// attentions belongs to the unit.
class CommandContext : public AttachedNexus {
 public:
  // `nexus` must outlive this object.
  CommandContext(std::shared_ptr<Unit> unit, NexusContext& nexus, uint64_t lun);

  Unit& unit() const { return *unit_; }
  const std::shared_ptr<Unit>& shared_unit() const { return unit_; }
  uint64_t lun() const { return lun_; }
  // The owner of memory that the unit lends (Backend::borrow). The unit lives until the last of
  // these references is released, even if bytes of a removed LUN wait for a slow peer. The count is
  // not atomic: reactor's thread only.
  const BufferRef& loan() const { return loan_; }
  // The same for memory of the unit's present backend, which then also stays alive.
  const BufferRef& backend_loan();

  const NexusId& nexus_id() const final { return context_.id(); }
  const ReactorContext& reactor_context() const final { return context_.reactor_context(); }
  bool forwarded() const final { return context_.forwarded(); }
  Nanos host_since() const final { return context_.host_since(); }
  void forget_backend() final { backend_loan_ = BufferRef(); }
  void drop_nexus(const char* why) final;

  // A command ended while `watched` is set: blocked commands and drains may continue.
  virtual void after_completion() = 0;
  // A command stops waiting in the task set.
  void leave_held();

  // --- the task set (TST=001b: one per I_T_L nexus)
  uint32_t active = 0;    // commands between begin() and complete()
  uint32_t ordering = 0;  // number of ORDERED or HEAD OF QUEUE commands among them
  // Number of kHeld commands among them, plus resets that wait for the unit's owner
  // (nexus/owner_resets.h); later commands queue behind them.
  uint32_t held = 0;
  bool watched = false;  // a completion must check blocked commands or drains
  uint64_t next_sequence = 1;
  Command* active_head = nullptr;  // in order of arrival
  Command* active_tail = nullptr;
  // bytes that the transport has requested, or will, for commands in progress
  size_t asked_for = 0;

  // --- what this path to the unit permits
  bool removed = false;  // the LUN was removed from the inventory while commands were active
  // The host may only read (HostAccess::read_only), or the LUN is read-only in its target. Commands
  // that change the unit are refused, regardless of the unit's own permissions (commands/gate.cc).
  bool read_only = false;
  // Results of the last gate check: the Unit::gate_word() under which nothing blocks this nexus,
  // and its rights under reservation version gate_word() / Unit::kGateStep (commands/gate.cc).
  uint64_t open_gate = 0;
  uint64_t rights_version = UINT64_MAX;
  ReservationRights rights;

 private:
  const std::shared_ptr<Unit> unit_;
  NexusContext& context_;
  const uint64_t lun_;
  const BufferRef loan_;
  BufferRef backend_loan_;
  const backend::Backend* lender_ = nullptr;  // stays alive while backend_loan_ refers to it
};

}  // namespace sluice::lun
