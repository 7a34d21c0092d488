// An I_T nexus: everything SCSI remembers about one initiator port at one target port (DESIGN §1:
// initiator name + ISID + target portal group). The transport uses SCSI through it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/command.h"
#include "nexus/itl.h"
#include "nexus/itl_table.h"
#include "nexus/owner_links.h"
#include "nexus/owner_resets.h"
#include "nexus/target.h"
#include "unit/unit.h"

namespace sluice::lun {

class Countdown;

// Created at login, closed at the session's end; both on the reactor that it stays on.
class Nexus final : public TargetNexus, public std::enable_shared_from_this<Nexus> {
 public:
  // Opens the I_T nexus on a target: each of its LUNs has 29/00 pending as after power on, or 29/07
  // where an earlier nexus of the same id was lost. Their I_T_L nexuses come with their first use.
  // `read_only`: this host may not write (HostAccess::read_only); every LUN is write protected.
  // Others are where their LUN is (Target::LunEntry::read_only).
  // `forwarded`: the host is at another gateway, where it has had this nexus for so long. That
  // gateway has reported 29/00 to it; the nexus has 29/07 pending at most, and what only this
  // gateway raised meanwhile.
  static std::shared_ptr<Nexus> open(std::shared_ptr<Target> target, NexusId id,
                                     const ReactorContext& context, bool read_only = false,
                                     std::optional<Nanos> forwarded = std::nullopt);
  ~Nexus() override;

  // Starts a command. true: it waits for min(data_out_wanted, expected_data_out)
  // bytes.
  bool begin(Command& command);
  // All data the initiator sends is in command.data_out.
  void data_ready(Command& command);
  // complete() follows, once the backend has released the command (DESIGN R5).
  void abort(Command& command);

  // Commands that wait for an owner or for bandwidth go on, or end, by the clock. The transport
  // calls it every limits::kTick.
  void tick();

  void after_tick(std::function<void()> go_on) override { starved_.push_back(std::move(go_on)); }

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

  Target& target() const { return *target_; }
  bool read_only() const { return read_only_; }

  // The LUN inventory changed: takes up new LUNs, drops removed ones, raises 3F/0E. Posted by
  // Target to this reactor.
  void refresh_luns() override;
  void drop_if_unused(const Unit& unit, const char* why) override;

  scsi::PortIdentity port() const override { return target_->port_of(id_); }
  std::vector<TargetPort> target_ports() const override { return target_->ports_known_to(id_); }
  std::vector<NexusId> nexuses_of_target() const override { return target_->nexus_ids(); }
  TokenStore& tokens() const override { return target_->tokens(); }
  std::shared_ptr<Unit> unit_by_designator(ByteView designator) const override {
    return target_->unit_by_designator(designator);
  }
  std::vector<uint64_t> lun_numbers() const override;
  void inventory_reported() override;
  void use_luns_of(const Unit& unit) override;
  bool is_read_only(const Unit& unit) const override;

  // The I_T_L nexus of a LUN that has been used; nullptr: there is none.
  Itl* find(uint64_t lun_field) const { return itls_.find(lun_field); }
  // The same, made where this is the first use. nullptr: there is no such LUN. Well-known LUNs have
  // none.
  Itl* use(uint64_t lun_field);
  std::vector<Itl*> itls() const { return itls_.all(); }  // of those that were used, sorted by LUN
  // As OwnerLinks::link_to().
  std::shared_ptr<Link> link_to(uint16_t owner) {
    return links_.link_to(owner, shared_from_this());
  }

 private:
  class OpenItl;

  Nexus(std::shared_ptr<Target> target, NexusId id, const ReactorContext& context);

  const MappedLun* listed(uint64_t lun_field) const;
  Itl* open_itl(const MappedLun& lun);
  void protect(Itl& itl, bool read_only);
  void retire(const std::shared_ptr<Itl>& itl);
  void resume_held(Itl& itl);
  void finish_close();
  // LOGICAL UNIT RESET of the unit of each LUN; `done` is posted here after the last.
  void reset_units(const LunMap& luns, std::function<void(bool)> done);
  void follow_owner(const MappedLun& lun, std::function<void(bool at_owner)> done);
  void abort_task_set_at_owner(const Unit& unit, uint64_t lun_field,
                               const std::shared_ptr<Countdown>& all);

  const std::shared_ptr<Target> target_;
  std::shared_ptr<const LunMap> luns_;  // as this nexus knows them, the target may be ahead
  uint64_t opened_at_ = 0;              // AttentionLog::now()
  std::optional<UnitAttention> first_attention_;  // of every LUN that was there then
  bool inventory_changed_ = false;                // LUNs not used yet have 3F/0E pending
  ItlTable itls_;
  std::vector<std::shared_ptr<Itl>> retired_;  // removed, with commands active
  OwnerLinks links_{*this};
  OwnerResets owner_resets_{*this, links_};
  std::vector<std::function<void()>> starved_;  // of after_tick()
  bool read_only_ = false;
};

}  // namespace sluice::lun
