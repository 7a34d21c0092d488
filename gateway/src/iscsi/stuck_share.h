// Keeps half of a session's command window free of commands for stuck units (DESIGN R15): a disk
// that hangs must not prevent the host from using its other LUNs.
//
// - A session may have as many commands at stuck units as half of its window has numbers. More get
//   BUSY (commands/gate.cc).
// - Before a unit is found to be stuck, its commands may have filled the window. The numbers of
// those
//   beyond the half are freed, although the commands continue. So MaxCmdSN increases, and the host
//   may send more (RFC 7143 §4.2.2.1).
//
// Threads: one reactor.
#pragma once

#include "commands/command_context.h"
#include "iscsi/session_tasks.h"

namespace sluice::iscsi {

class StuckShare {
 public:
  // `nexus`: null for a discovery session, which has no tasks.
  StuckShare(SessionTasks& tasks, lun::NexusContext* nexus);

  // Counts the commands at stuck units, and frees numbers. Call it every limits::kTick.
  void update();

 private:
  SessionTasks& tasks_;
  lun::NexusContext* const nexus_;
};

}  // namespace sluice::iscsi
