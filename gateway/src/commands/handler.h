// What handlers are made of. A handler gets a command that passed
// the gate, whose data (if any) is complete and whose block range (if any) is held. It ends the
// command with one of the finish functions, now or after asynchronous steps.
#pragma once

#include "commands/command.h"
#include "commands/command_context.h"
#include "unit/unit.h"

namespace sluice::lun {

using Handler = void (*)(Unit& unit, Command& command);

// Ending a command. Releases its range, leaves the task set, then calls command.complete(). A
// command that was aborted meanwhile ends as aborted, whatever a handler says: handlers need not
// look, but those that go on for long check command.aborted between their steps.
void finish_good(Command& command);
void finish_status(Command& command, scsi::Status status);
void finish_sense(Command& command, const scsi::Sense& sense);
// Maps an errno of the backend to sense data and counts it: EIO 03/11/00 (read) 03/0C/00 (write),
// ENOSPC/EDQUOT 07/27/07, EROFS 07/27/00, ENODEV/ENXIO/ENOENT/ESTALE 02/04/00 (and the unit goes
// NOT READY), ETIMEDOUT 0B/4B/06, EOPNOTSUPP 05/20/00, ENOMEM/EAGAIN status BUSY, others 04/44/00.
// ESHUTDOWN (fenced) is never answered: the nexus is dropped (R4).
void finish_errno(Command& command, int negative_errno, backend::Op op);
// A Link ends a command so, with what the owner answered: `sense` as it came, `data_in` as much as
// the initiator has room for, and `overflow` bytes that it hasn't. Where the owner's CDB asks for
// less data-out than was forwarded (a residual), the link sets command.data_out_wanted before. TASK
// ABORTED ends it like any status.
void finish_forwarded(Command& command, scsi::Status status, ByteView sense,
                      std::vector<Slice> data_in, uint32_t overflow = 0);
// And with what the medium's own device answered, as it came.
void finish_answered(Command& command, const backend::Io::Answer& answer);
// The same mapping alone, for requests that are not a command's own.
scsi::Sense sense_of_errno(int error, backend::Op op);
// Ends a command that was marked aborted.
void finish_aborted(Command& command);
// Answers with a copy of `data` cut to `allocation_length`; status GOOD.
void finish_data(Command& command, ByteView data, uint32_t allocation_length);

// The initiator announced less data than the command needs to mean anything: 05/0E/03 (INVALID
// FIELD IN COMMAND INFORMATION UNIT); the transport reports the residual.
void finish_short_data(Command& command);

// Linear view of the data-out bytes: points into data_out when it is one slice, else copies into
// a buffer owned by the command. For parameter lists (bounded by limits::kMaxParameterList).
ByteView gather_data_out(Command& command);

// Runs one backend request over command.io to its end, however short its transfers and however
// many IOV_MAX chunks its vectors need, then calls `next(unit, command)` if it succeeded; on error
// it calls finish_errno. The memory of kRead/kWrite is what command.iov lists, `length` bytes in
// all; command.iov is used up. An aborted command ends here and `next` isn't called.
void run_io(Unit& unit, Command& command, backend::Op op, uint8_t flags, uint64_t offset,
            uint64_t length, Handler next);

// Fills command.iov from data_out, for `length` bytes from `skip`.
void vectors_from_data_out(Command& command, uint64_t skip, uint64_t length);
// Allocates buffers for `length` bytes into data_in and command.iov; false when memory is short
// (the caller ends with finish_status(kBusy)).
bool allocate_data_in(Command& command, uint64_t length);

// Holds [lba, lba + blocks) through command.hold for a handler whose ranges come from its
// parameter list, then calls `next`. What command.hold held before is let go. One command never
// waits for a range while it holds another: two such would wait for each other for ever.
// An abort that comes while it waits ends the command and `next` isn't called.
void hold_range(Unit& unit, Command& command, uint64_t lba, uint64_t blocks, bool exclusive,
                Handler next);

// Checks a range against the capacity; fills *sense with 05/21/00 when it doesn't fit.
bool range_fits(const Unit& unit, uint64_t lba, uint64_t blocks, scsi::Sense* sense);

}  // namespace sluice::lun
