// The users of a logical unit, as the unit sees them: I_T_L nexuses and targets. The task set and
// the target implement these interfaces. No command of the normal path calls a virtual function
// here.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/reactors.h"
#include "unit/attention.h"
#include "unit/countdown.h"
#include "unit/nexus_id.h"
#include "unit/reactor_context.h"

namespace sluice::lun {

struct Command;
class Unit;

class AttachedNexus : public std::enable_shared_from_this<AttachedNexus> {
 public:
  virtual ~AttachedNexus() = default;

  // --- any thread
  // Its address identifies the I_T nexus: a later nexus may have an equal id.
  virtual const NexusId& nexus_id() const = 0;
  virtual const ReactorContext& reactor_context() const = 0;
  virtual bool forwarded() const = 0;    // Nexus::forwarded()
  virtual Nanos host_since() const = 0;  // Nexus::host_since()

  // --- on its reactor
  // Aborts all commands that are in the task set now, except `except`.
  virtual void abort_commands(bool task_aborted_status, const Command* except) = 0;
  // `done` runs when all commands that are in the task set now, except `except`, are complete.
  // False: there are none, and `done` is dropped.
  virtual bool drain(const Command* except, std::function<void()> done) = 0;
  // As drain(), but does not wait for detached commands (Command::detached). For responses.
  virtual bool drain_attached(std::function<void()> done) = 0;
  // As drain(), for the commands that were started.
  virtual bool drain_started(std::function<void()> done) = 0;
  // The unit's role changed: held commands continue as far as they can.
  virtual void on_role_change() = 0;
  // The unit closes its backend: releases the references to it.
  virtual void forget_backend() = 0;
  // Ends the I_T nexus as lost, without further answers (DESIGN R4). `why` is for the log.
  virtual void drop_nexus(const char* why) = 0;

  // Set under the unit's mutex, read by any thread.
  std::atomic<bool> attention{false};
  // Unit attentions, oldest first; guarded by the unit's mutex; at most kMaxUnitAttentions.
  std::vector<UnitAttention> pending;
};

// A target that maps the unit to a LUN, or has done so.
class ExportingTarget {
 public:
  virtual ~ExportingTarget() = default;
  // Drops the nexuses that reach `unit` but have not used it yet, each on its reactor. `all` counts
  // them.
  virtual void drop_unused_nexuses(const std::shared_ptr<Unit>& unit, Reactors& reactors,
                                   const char* why, const std::shared_ptr<Countdown>& all) = 0;
};

}  // namespace sluice::lun
