// How commands reach a volume's owner: the interface. forward/ implements it with an iSCSI session
// per I_T nexus and owner, over the cluster network (DESIGN R1, R6, R9).
//
// Threads: only the nexus's reactor uses a Link.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "commands/command.h"

namespace sluice::lun {

class Nexus;

// Task management functions that a link carries (SAM-5 §7); a target reset resets each unit.
enum class LinkFunction : uint8_t { kAbortTaskSet, kClearTaskSet, kLogicalUnitReset };

// A link from one I_T nexus of this gateway to one gateway that owns volumes. The first command
// that needs it opens it; commands that start meanwhile wait in it, in order.
class Link {
 public:
  virtual ~Link() = default;

  // Passes on `command`; all its data-out has arrived. The command ends by finish_forwarded() or
  // finish_sense() (commands/handler.h), later or within the call, with the owner's status, sense
  // and data. If no part of it can reach the owner's backend any more (R6), it ends with
  // - return_forwarded() (nexus/pipeline.h) if the owner refused it without execution,
  //   because it does not own the volume in `epoch` or the token was too old; the command waits for
  //   an owner and is retried within limits::kHoldCommands (R7);
  // - 02/04/0A if the owner is gone;
  // - Outcome::kUnknown if the outcome is unknown and the command must not run twice (COMPARE AND
  // WRITE,
  //   PERSISTENT RESERVE OUT, RESERVE and RELEASE).
  virtual void start(Command& command, uint64_t epoch) = 0;
  // The command ends when the owner has released it, or can't execute it any more.
  virtual void abort(Command& command) = 0;
  // Sends a task management function to the owner. `done` runs later, never within the call.
  // `carried_out` false: that gateway is not the owner, or is fenced, and nothing of the link can
  // reach a backend any more. A logical unit reset also ends so if there was no session for
  // limits::kHoldCommands; the caller then asks the present owner.
  virtual void function(LinkFunction function, uint64_t lun_field,
                        std::function<void(bool carried_out)> done) = 0;
  // The nexus ends; `lost` as in Nexus::close(). `done` runs later, never within the call, when the
  // owner has ended the forwarded nexus, or nothing of it can reach a backend any more.
  virtual void close(bool lost, std::function<void()> done) = 0;
  // Whether the link has permanently ended (its owner was fenced or lost): the next command needs a
  // new one. The link still ends its commands, and is closed as any other.
  virtual bool ended() const { return false; }
};

// The gateway's forwarding for all its nexuses, available in their ReactorContext. Any reactor may
// call it.
class Forwarding {
 public:
  virtual ~Forwarding() = default;
  // Opens a link of a nexus to the gateway with number `owner`, on the nexus's reactor. nullptr:
  // that gateway is unknown (commands are answered 02/04/0A).
  virtual std::shared_ptr<Link> open(const std::shared_ptr<Nexus>& nexus, uint16_t owner) = 0;
};

}  // namespace sluice::lun
