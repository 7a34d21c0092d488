// An I_T nexus: the SCSI state of one initiator port at one target port (DESIGN §1: initiator name
// + ISID + target portal group). The transport uses SCSI through it.
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

// Created at login, closed at the session's end, both on its reactor, which never changes.
class Nexus final : public TargetNexus, public std::enable_shared_from_this<Nexus> {
 public:
  // Opens the I_T nexus on a target: each LUN has 29/00 pending as after power on, or 29/07 if an
  // earlier nexus of the same id was lost. An I_T_L nexus is created at the first use of its LUN.
  //
  // `read_only`: this host may not write (HostAccess::read_only), so every LUN is write protected.
  // Otherwise a LUN is if Target::LunEntry::read_only is set.
  //
  // `forwarded`: the host is connected to another gateway, for this long. That gateway has reported
  // 29/00, so the nexus has at most 29/07 pending, plus attentions that only this gateway raised
  // meanwhile.
  static std::shared_ptr<Nexus> open(std::shared_ptr<Target> target, NexusId id,
                                     const ReactorContext& context, bool read_only = false,
                                     std::optional<Nanos> forwarded = std::nullopt);
  ~Nexus() override;

  // Starts a command. True: it waits for min(data_out_wanted, expected_data_out) bytes.
  bool begin(Command& command);
  // All data that the initiator sends is in command.data_out.
  void data_ready(Command& command);
  // complete() is called when the backend has released the command (DESIGN R5), and on_detached()
  // before that if it takes longer than limits::kAbortBound.
  void abort(Command& command);

  // Continues or ends commands that wait for an owner or for bandwidth, and detaches aborted
  // commands, depending on the time. The transport calls it every limits::kTick until the `done` of
  // close().
  void tick();

  void after_tick(std::function<void()> go_on) override { starved_.push_back(std::move(go_on)); }

  // Task management (SAM-5 §7). `done` runs on this nexus's reactor when all affected commands, of
  // any nexus, have completed or are detached, also at the unit's owner (DESIGN R9); never within
  // the call, here and in close(). False: the LUN does not exist (the transport answers "LUN does
  // not exist"), and `done` is not called. For a reset, `done(false)` means that the unit's owner
  // did not perform it; for a forwarded nexus, that this gateway is not the owner. Also then all
  // affected commands of this nexus have ended or are detached.
  bool abort_task_set(uint64_t lun_field, std::function<void()> done);
  bool clear_task_set(uint64_t lun_field, std::function<void()> done);
  bool logical_unit_reset(uint64_t lun_field, std::function<void(bool at_owner)> done);
  // Resets every LUN of the target (warm and cold reset).
  void target_reset(std::function<void(bool at_owners)> done);
  // Whether the LUN exists, for the checks of QUERY TASK and ABORT TASK.
  bool has_lun(uint64_t lun_field) const;
  // The pending unit attention for QUERY ASYNCHRONOUS EVENT; false: none.
  bool peek_unit_attention(uint64_t lun_field, UnitAttention* out);

  // I_T nexus loss (SAM-5 §6.3.4): aborts every command, releases RESERVE(6), drops pending unit
  // attentions; persistent reservations stay. `done` runs on this reactor when all commands have
  // completed. `lost`: the connection broke without a logout, so the next nexus of this id reports
  // 29/07. `ended`, unless empty, runs on this reactor before `done`, when only detached commands
  // are left (Command::detached): another nexus of this id may begin. A second call ignores it.
  void close(bool lost, std::function<void()> done, std::function<void()> ended = {});

  Target& target() const { return *target_; }
  bool read_only() const { return read_only_; }

  // The LUN inventory changed: adds new LUNs, drops removed ones, raises 3F/0E. Target posts it to
  // this reactor.
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

  // The I_T_L nexus of a LUN that has been used; nullptr: none.
  Itl* find(uint64_t lun_field) const { return itls_.find(lun_field); }
  // The same, but created at the first use. nullptr: no such LUN. Well-known LUNs have none.
  Itl* use(uint64_t lun_field);
  std::vector<Itl*> itls() const { return itls_.all(); }  // of the used LUNs, sorted by LUN
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
  void release_reservations();
  void detach_overdue();
  void finish_close();
  // LOGICAL UNIT RESET of each LUN's unit; `done` is posted to this reactor after the last.
  void reset_units(const LunMap& luns, std::function<void(bool)> done);
  void follow_owner(const MappedLun& lun, std::function<void(bool at_owner)> done);
  void abort_task_set_at_owner(const Unit& unit, uint64_t lun_field,
                               const std::shared_ptr<Countdown>& all);

  const std::shared_ptr<Target> target_;
  std::shared_ptr<const LunMap> luns_;  // as this nexus knows them; the target's may be newer
  uint64_t opened_at_ = 0;              // AttentionLog::now()
  std::optional<UnitAttention> first_attention_;  // of every LUN that existed then
  bool inventory_changed_ = false;                // unused LUNs have 3F/0E pending
  ItlTable itls_;
  std::vector<std::shared_ptr<Itl>> retired_;  // removed, but with active commands
  OwnerLinks links_{*this};
  OwnerResets owner_resets_{*this, links_};
  std::vector<std::function<void()>> starved_;  // from after_tick()
  bool read_only_ = false;
};

}  // namespace sluice::lun
