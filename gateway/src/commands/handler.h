// The building blocks of handlers. A handler gets a command that passed the gate, whose data (if
// any) is complete and whose block range (if any) is held. It ends the command with one of the
// finish functions, immediately or after asynchronous steps.
#pragma once

#include <functional>

#include "commands/command.h"
#include "commands/command_context.h"
#include "commands/decision.h"
#include "unit/unit.h"

namespace sluice::lun {

using Handler = void (*)(Unit& unit, Command& command);

// Ends a command: releases its range, removes it from the task set, then calls command.complete().
// A command that was aborted meanwhile ends as aborted, whatever the handler passes. So handlers
// need not check that, but long ones check command.aborted() between their steps.
void finish_good(Command& command);
void finish_status(Command& command, scsi::Status status);
void finish_sense(Command& command, const scsi::Sense& sense);
// As a check decided (Verdict::kAnswer).
void finish(Command& command, const Decision& decision);
// Maps an errno of the backend to sense data and counts it: EIO 03/11/00 (read) 03/0C/00 (write),
// ENOSPC/EDQUOT 07/27/07, EROFS 07/27/00, ENODEV/ENXIO/ENOENT/ESTALE 02/04/00 (and the unit goes
// NOT READY), ETIMEDOUT 0B/4B/06, EOPNOTSUPP 05/20/00, ENOMEM/EAGAIN status BUSY, others 04/44/00.
// ESHUTDOWN (fenced) is never answered: the nexus is dropped (R4).
void finish_errno(Command& command, int negative_errno, backend::Op op);
// Ends a forwarded command with the owner's answer. `sense`: unmodified; `data_in`: limited to what
// the initiator can receive; `overflow`: number of bytes beyond that. If the owner's CDB requires
// less data-out than was forwarded (a residual), the link sets command.data_out_wanted before. TASK
// ABORTED is treated as any other status.
void finish_forwarded(Command& command, scsi::Status status, ByteView sense,
                      std::vector<Slice> data_in, uint32_t overflow = 0);
// Ends a command with the unmodified answer of the medium's own device.
void finish_answered(Command& command, const backend::Io::Answer& answer);
// The same mapping for requests that do not belong to a command.
scsi::Sense sense_of_errno(int error, backend::Op op);
// Ends a command that was marked aborted.
void finish_aborted(Command& command);
// Answers GOOD with a copy of `data`, limited to `allocation_length`.
void finish_data(Command& command, ByteView data, uint32_t allocation_length);

// The initiator announced less data than the command requires: 05/0E/03 (INVALID FIELD IN COMMAND
// INFORMATION UNIT); the transport reports the residual.
void finish_short_data(Command& command);

// The data-out bytes as contiguous memory: refers to data_out if that is one slice, else copies
// into a buffer of the command. For parameter lists (at most limits::kMaxParameterList).
ByteView gather_data_out(Command& command);

// Runs one backend request with command.io, including continuation after short transfers and splits
// at IOV_MAX. Then it calls `next(unit, command)`, or finish_errno after an error. The memory of
// kRead and kWrite is command.iov, `length` bytes in total; command.iov is consumed. An aborted
// command ends here without a call of `next`.
void run_io(Unit& unit, Command& command, backend::Op op, uint8_t flags, uint64_t offset,
            uint64_t length, Handler next);

// Calls `ask`, then `answer`. `ask` may wait for the medium (Backend::run_query), possibly on
// another thread, so it uses only the backend and what it owns. `answer` ends the command on the
// reactor.
void ask_medium(Unit& unit, Command& command, std::function<void(const backend::Backend&)> ask,
                std::function<void()> answer);

// Fills command.iov with the `length` bytes of data_out at `skip`.
void vectors_from_data_out(Command& command, uint64_t skip, uint64_t length);
// Allocates buffers for `length` bytes in data_in and command.iov. False: out of memory (the caller
// ends with finish_status(kBusy)).
bool allocate_data_in(Command& command, uint64_t length);

// Holds [lba, lba + blocks) through command.hold, then calls `next`; for a handler whose ranges
// come from its parameter list. Releases the previous range of command.hold first: a command never
// waits for a range while it holds another, because two such commands could deadlock. An abort
// during the wait ends the command without a call of `next`.
void hold_range(Unit& unit, Command& command, uint64_t lba, uint64_t blocks, bool exclusive,
                Handler next);

// Checks a range against the capacity. False: sets *sense to 05/21/00.
bool range_fits(const Unit& unit, uint64_t lba, uint64_t blocks, scsi::Sense* sense);

}  // namespace sluice::lun
