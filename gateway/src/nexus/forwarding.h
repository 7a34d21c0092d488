// How commands reach a volume's owner, as this room sees it. forward/ implements it by an iSCSI
// session per I_T nexus and owner, over the cluster network (DESIGN R1, R6, R9).
//
// Threads: a Link lives on its nexus's reactor and is touched by no other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "commands/command.h"

namespace sluice::lun {

class Nexus;

// What a link carries of task management (SAM-5 §7); a target reset is a reset of each unit.
enum class LinkFunction : uint8_t { kAbortTaskSet, kClearTaskSet, kLogicalUnitReset };

// From one I_T nexus of this gateway to one gateway that owns volumes of it. Opened by the first
// command that needs it; what starts while it is being opened waits in it, in order.
class Link {
 public:
  virtual ~Link() = default;

  // Hands over `command`, whose data-out is all there. It ends by finish_forwarded() or
  // finish_sense() (commands/handler.h), later or inside the call: with the owner's status,
  // sense and data, or, when nothing of it can reach the owner's backend any more (R6), with
  //   - return_forwarded() (nexus/command_routing.h) where the owner refused it unexecuted, because
  //   it doesn't own the volume
  //     in `epoch` (any more) or the command's token was too old: it waits for an owner and is
  //     tried again, within limits::kHoldCommands (R7);
  //   - 02/04/0A where the owner is gone;
  //   - drops_nexus where nobody knows what became of a command that must not run twice (COMPARE
  //     AND WRITE, PERSISTENT RESERVE OUT, RESERVE and RELEASE).
  virtual void start(Command& command, uint64_t epoch) = 0;
  // The command ends once the owner has let go of it, or can't any more.
  virtual void abort(Command& command) = 0;
  // A task management function at the owner. `done` runs later, never inside the call.
  // `carried_out` false: who was asked is not the owner, or is fenced, and nothing of the link can
  // reach a backend any more. A logical unit reset also ends so where there has been no session for
  // limits::kHoldCommands: who asked for it asks the owner that there is by then.
  virtual void function(LinkFunction function, uint64_t lun_field,
                        std::function<void(bool carried_out)> done) = 0;
  // The nexus ends: `lost` as in Nexus::close(). `done` runs later, never inside the call, once
  // the owner has ended the forwarded nexus too, or nothing of it can reach a backend any more.
  virtual void close(bool lost, std::function<void()> done) = 0;
  // Over for good (its owner fenced or lost): the next command gets a new one. It still ends the
  // commands it has, and is closed like any other.
  virtual bool ended() const { return false; }
};

// What a gateway has for all its nexuses; given to them in their ReactorContext. Any reactor may
// call.
class Forwarding {
 public:
  virtual ~Forwarding() = default;
  // Of a nexus of this gateway to the gateway with this number; on the nexus's reactor. nullptr:
  // nobody knows that gateway (commands are answered 02/04/0A).
  virtual std::shared_ptr<Link> open(const std::shared_ptr<Nexus>& nexus, uint16_t owner) = 0;
};

}  // namespace sluice::lun
