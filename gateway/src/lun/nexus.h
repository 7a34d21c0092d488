// An I_T nexus and its I_T_L nexuses: everything SCSI remembers about one initiator port at one
// target port (DESIGN §1: initiator name + ISID + target portal group).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/aio.h"
#include "base/buffer.h"
#include "base/reactors.h"
#include "lun/command.h"
#include "lun/copies/copy_records.h"
#include "lun/owner_resets.h"
#include "lun/reservations/reservation_rights.h"

namespace sluice::lun {

class Countdown;
class Forwarding;
class Link;
class LatencyLog;
class Unit;
class Target;
class Nexus;
struct MappedLun;
using LunMap = std::vector<MappedLun>;  // sorted by LUN; lun/exports.h

// Names the two ports. Persistent reservations are kept under this key (SPC-5 §5.14.1).
struct NexusId {
  std::string initiator_name;         // iSCSI name, lower case
  std::array<uint8_t, 6> isid{};      // RFC 7143 §11.12.5
  uint16_t target_portal_group = 1;   // TPGT
  uint16_t relative_target_port = 1;  // cluster-wide unique id of IQN + TPGT
  bool operator==(const NexusId&) const = default;
};

struct UnitAttention {
  uint8_t asc = 0;
  uint8_t ascq = 0;
  bool operator==(const UnitAttention&) const = default;
};

// What a reactor lends to the commands that run on it.
struct Lane {
  Aio* aio = nullptr;
  BufferPool* buffers = nullptr;
  Reactors* reactors = nullptr;
  unsigned reactor = 0;
  const Nanos* now = nullptr;  // the reactor's time of the current batch
  LatencyLog* latencies = nullptr;
  Forwarding* forwarding = nullptr;  // null: a gateway without a control plane
  // A fresh reading of the clock of `now`, for Command::fresh_until; null: nothing goes stale.
  Nanos (*clock)() = nullptr;
};

// Somebody who waits until commands that were in the task set at some time are gone.
struct Drain {
  uint64_t before = 0;              // commands with a smaller sequence number
  const Command* except = nullptr;  // the one that asks, if it is one of them
  bool started_only = false;        // of them those that may have reached the backend, or will
  std::function<void()> done;
};

// An I_T_L nexus, made at the first use of its LUN. The fast path reads one atomic here; the queue
// behind it is the unit's.
class Itl : public std::enable_shared_from_this<Itl> {
 public:
  // Makes it known to its unit, too. Pending are `first`, and what the unit has raised after
  // `since` (AttentionLog::now()).
  static std::shared_ptr<Itl> open(const std::shared_ptr<Unit>& unit,
                                   const std::shared_ptr<Nexus>& nexus, uint64_t lun,
                                   const std::vector<UnitAttention>& first, uint64_t since);
  Itl(std::shared_ptr<Unit> unit, std::shared_ptr<Nexus> nexus, uint64_t lun);
  ~Itl();

  Unit& unit() const { return *unit_; }
  const std::shared_ptr<Unit>& shared_unit() const { return unit_; }
  Nexus& nexus() const { return *nexus_; }
  const std::shared_ptr<Nexus>& shared_nexus() const { return nexus_; }
  uint64_t lun() const { return lun_; }
  // Owner of memory that is lent out of the unit (Backend::borrow): the unit lives until the last
  // of these references is gone, so also while bytes of a removed LUN wait for a slow peer. The
  // count is a plain one: reactor's thread only.
  const BufferRef& loan() const { return loan_; }
  // The same for memory of the backend that the unit has now; that one then lives on too.
  const BufferRef& backend_loan();
  void forget_backend() { backend_loan_ = BufferRef(); }

  // --- task set (TST=001b: one per I_T_L nexus), reactor's thread only; lun/task_set.cc
  uint32_t active = 0;     // commands between begin() and complete()
  uint32_t ordering = 0;   // of them ORDERED or HEAD OF QUEUE
  uint32_t held = 0;       // of them kHeld, and `resets`: what comes later queues up behind them
  uint32_t resets = 0;     // by this nexus, which wait for the unit's owner (lun/owner_resets.h)
  bool watched = false;    // a completion must look at blocked commands or drains
  bool releasing = false;  // somebody further up the stack is looking already
  bool resuming = false;   // the same, of held ones
  bool removed = false;    // the LUN left the inventory while commands were active
  // The host may only read (HostAccess::read_only), or the LUN is read-only in its target: it
  // changes nothing that others of the unit would notice, whatever the unit itself allows
  // (lun/gate.cc).
  bool read_only = false;
  // What the gate found out: Unit::gate_word() under which nothing stands in this nexus's way, and
  // its rights under the reservations of Unit::gate_word() / Unit::kGateStep (lun/gate.cc).
  uint64_t open_gate = 0;
  uint64_t rights_version = UINT64_MAX;
  ReservationRights rights;
  uint64_t next_sequence = 1;
  size_t asked_for = 0;  // bytes the transport asked for, or will, for commands that are not over
  Command* active_head = nullptr;  // in order of arrival
  Command* active_tail = nullptr;
  std::vector<Drain> drains;

  // --- unit attention; `attention` is set under the unit's mutex, read by anyone
  std::atomic<bool> attention{false};
  std::vector<UnitAttention> pending;  // guarded by the unit's mutex; at most kMaxUnitAttentions

 private:
  std::shared_ptr<Unit> unit_;
  std::shared_ptr<Nexus> nexus_;  // kept alive: other reactors reach it through the unit
  uint64_t lun_;
  const BufferRef loan_;
  BufferRef backend_loan_;
  const backend::Backend* lender_ = nullptr;  // alive while backend_loan_ refers to it
};

// The transport's door into SCSI. Created at login, closed at the session's end; both on the
// reactor it stays on.
class Nexus : public std::enable_shared_from_this<Nexus> {
 public:
  // Opens the I_T nexus on a target: each of its LUNs has 29/00 pending as after power on, or 29/07
  // where an earlier nexus of the same id was lost. Their I_T_L nexuses come with their first use.
  // `read_only`: this host may not write (HostAccess::read_only); every LUN is write protected.
  // Others are where their LUN is (Target::LunEntry::read_only).
  // `forwarded`: the host is at another gateway, where it has had this nexus for so long. That
  // gateway has told it of 29/00; the nexus has 29/07 pending at most, and what only this gateway
  // raised meanwhile.
  static std::shared_ptr<Nexus> open(std::shared_ptr<Target> target, NexusId id, Lane lane,
                                     bool read_only = false,
                                     std::optional<Nanos> forwarded = std::nullopt);
  ~Nexus();

  // Starts a command. true: it waits for min(data_out_wanted, expected_data_out)
  // bytes.
  bool begin(Command& command);
  // All data the initiator sends is in command.data_out.
  void data_ready(Command& command);
  // complete() follows, once the backend has let go of the command (DESIGN R5).
  void abort(Command& command);

  // Commands that wait for an owner or for bandwidth go on, or end, by the clock. The transport
  // calls it every limits::kTick.
  void tick();

  // Calls `go_on` once, at the next tick or when the nexus closes: for a command at work that waits
  // for bandwidth. At most limits::kCopyChunksInFlight per command.
  void after_tick(std::function<void()> go_on) { starved_.push_back(std::move(go_on)); }

  // Task management (SAM-5 §7). `done` runs on this nexus's reactor once every affected command,
  // of whatever nexus, has completed, at the unit's owner too (DESIGN R9). They return false for a
  // LUN that does not exist (the transport answers "LUN does not exist") and then don't call
  // `done`. `done` never runs inside the call, here and in close(). Of a reset, `done(false)`: the
  // unit's owner didn't carry it out; of a forwarded nexus: this gateway isn't the owner. All
  // commands of this nexus that it was about are over then, too.
  bool abort_task_set(uint64_t lun_field, std::function<void()> done);
  bool clear_task_set(uint64_t lun_field, std::function<void()> done);
  bool logical_unit_reset(uint64_t lun_field, std::function<void(bool at_owner)> done);
  // Resets every LUN of the target (warm and cold reset).
  void target_reset(std::function<void(bool at_owners)> done);
  // Whether the LUN exists, for QUERY TASK and ABORT TASK checks.
  bool has_lun(uint64_t lun_field) const;
  // Pending unit attention for QUERY ASYNCHRONOUS EVENT; false when there is none.
  bool peek_unit_attention(uint64_t lun_field, UnitAttention* out);

  // Nexus loss (SAM-5 §6.3.4): aborts every command, releases RESERVE(6), drops pending unit
  // attentions; persistent reservations stay. `done` runs here when all commands have completed.
  // `lost`: the connection broke (as against a logout): the next nexus of this id finds 29/07.
  void close(bool lost, std::function<void()> done);

  const NexusId& id() const { return id_; }
  const Lane& lane() const { return lane_; }
  Target& target() const { return *target_; }
  bool closed() const { return closed_; }
  bool read_only() const { return read_only_; }
  bool forwarded() const { return forwarded_; }  // it came in through the forwarding port
  // Since when (*lane().now) the host has had this nexus, here or at the gateway it is at; of a
  // forwarded one no later than that.
  Nanos host_since() const { return host_since_; }

  // The LUN inventory changed: takes up new LUNs, lets go of removed ones, raises 3F/0E. Posted by
  // Target to this reactor.
  void refresh_luns();

  // The I_T_L nexus of a LUN that has been used; nullptr: there is none.
  Itl* find(uint64_t lun_field) const;
  // The same, made where this is the first use. nullptr: there is no such LUN. Well-known LUNs have
  // none.
  Itl* use(uint64_t lun_field);
  void use_luns_of(const Unit& unit);  // every LUN by which it is reached
  bool reaches_unused(const Unit& unit) const;
  std::vector<uint64_t> lun_numbers() const;  // of all LUNs, sorted
  std::vector<Itl*> itls() const;             // of those that have been used, sorted by LUN
  // All LUNs' 3F/0E are taken away: the host has been told the inventory.
  void inventory_reported();

  // The way to a gateway that owns units; opened where there is none, or none that lives. nullptr:
  // nobody knows that gateway.
  std::shared_ptr<Link> link_to(uint16_t owner);
  // Sum of Itl::held, of all LUNs. lun/placing.cc and lun/owner_resets.cc keep it.
  uint32_t held = 0;
  OwnerResets& owner_resets() { return owner_resets_; }

  CopyRecords& copies() { return copies_; }  // of this nexus's third-party copies

  // Set by the transport: ends its session as lost, answering nothing more (DESIGN R4). `why` is
  // one clause for the log. Runs on this nexus's reactor, never after close().
  std::function<void(std::string why)> drop;

 private:
  Nexus(std::shared_ptr<Target> target, NexusId id, Lane lane);

  const MappedLun* listed(uint64_t lun_field) const;
  Itl* open_itl(const MappedLun& lun);
  void place(std::shared_ptr<Itl> itl);
  void protect(Itl& itl, bool read_only);
  void retire(const std::shared_ptr<Itl>& itl);
  void finish_close();
  // LOGICAL UNIT RESET of each one's unit; `done` is posted here after the last.
  void reset_units(const LunMap& luns, std::function<void(bool)> done);
  void abort_task_set_at_owner(const Unit& unit, uint64_t lun_field,
                               const std::shared_ptr<Countdown>& all);
  std::shared_ptr<Link> open_link(uint16_t owner) const;  // one that lives already, or nullptr

  NexusId id_;
  Lane lane_;
  std::shared_ptr<Target> target_;
  std::shared_ptr<const LunMap> luns_;  // as this nexus knows them, the target may be ahead
  uint64_t opened_at_ = 0;              // AttentionLog::now()
  std::optional<UnitAttention> first_attention_;  // of every LUN that was there then
  bool inventory_changed_ = false;                // LUNs not used yet have 3F/0E pending
  std::array<std::shared_ptr<Itl>, 256> low_;     // LUN 0..255
  std::vector<std::pair<uint64_t, std::shared_ptr<Itl>>> high_;  // 256.., sorted
  std::vector<std::shared_ptr<Itl>> retired_;                    // removed, with commands active
  CopyRecords copies_;
  OwnerResets owner_resets_{*this};
  std::vector<std::function<void()>> starved_;                     // of after_tick()
  std::vector<std::pair<uint16_t, std::shared_ptr<Link>>> links_;  // by owner
  bool closed_ = false;
  bool read_only_ = false;
  bool forwarded_ = false;
  Nanos host_since_ = 0;
};

}  // namespace sluice::lun
