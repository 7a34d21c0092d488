// An I_T_L nexus and its task set (SAM-5 §8): its commands, which of them may run, and which wait
// for others to end. TST is 001b, so every I_T_L nexus has its own set and needs no lock. It is
// created at the first use of its LUN.
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "commands/command.h"
#include "commands/command_context.h"
#include "nexus/owner_links.h"

namespace sluice::lun {

class Nexus;

class Itl : public CommandContext {
 public:
  // `context` and `links` are parts of `nexus`.
  Itl(std::shared_ptr<Unit> unit, std::shared_ptr<Nexus> nexus, NexusContext& context,
      OwnerLinks& links, uint64_t lun);

  Nexus& nexus() const { return *nexus_; }
  const std::shared_ptr<Nexus>& shared_nexus() const { return nexus_; }
  OwnerLinks& links() const { return links_; }  // of the nexus
  std::shared_ptr<Itl> shared_from_this() {
    return std::static_pointer_cast<Itl>(AttachedNexus::shared_from_this());
  }

  // Whether a command in the set may run now. Always true while all commands are SIMPLE.
  bool may_run(const Command& command) const;
  // The oldest blocked command that can run now; nullptr: none.
  Command* first_runnable() const;
  // Aborts one command: immediately if nothing was submitted for it, else when the backend has
  // released it.
  static void abort_command(Command& command, bool task_aborted_status);
  // Running commands end when the backend has released them.
  void abort_commands(bool task_aborted_status, const Command* except) final;
  bool drain(const Command* except, std::function<void()> done) final;
  bool drain_attached(std::function<void()> done) final;
  // Does not wait for commands that wait for data, their turn in the task set or an owner: they
  // check the unit's role before they continue.
  bool drain_started(std::function<void()> done) final;
  // Removes the drains that are complete, and returns their callbacks.
  std::vector<std::function<void()>> take_drained();
  // Detaches the commands that were aborted limits::kAbortBound ago and that the backend still has.
  // True: it has to be called again, for commands that were aborted later.
  bool detach_overdue();

  // number of resets by this nexus that wait for the unit's owner (nexus/owner_resets.h)
  uint32_t resets = 0;
  bool releasing = false;  // a caller further up the stack is already running blocked commands
  bool resuming = false;   // the same for held commands

 private:
  // Waits until commands that were in the task set at some time have ended.
  struct Drain {
    uint64_t before = 0;              // commands with a smaller sequence number
    const Command* except = nullptr;  // the command that waits, if it is one of them
    bool started_only = false;        // only commands that may have reached the backend, or will
    bool attached_only = false;       // no detached commands
    std::function<void()> done;
  };
  bool head_of_queue_active() const;
  bool drained(const Drain& drain) const;
  bool wait(Drain waiting);

  const std::shared_ptr<Nexus> nexus_;  // keeps it alive: other reactors access it through the unit
  OwnerLinks& links_;
  std::vector<Drain> drains_;
};

// Every command in a task set has an Itl.
inline Itl& itl_of(const Command& command) { return static_cast<Itl&>(*command.itl); }

}  // namespace sluice::lun
