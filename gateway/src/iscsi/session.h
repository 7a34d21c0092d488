// The full feature phase of one session (RFC 7143 §4, ERL 0, one connection): requests in command
// order, tasks, data both ways, task management. Knows no sockets and no clocks.
//
//   session.cc            ordering: CmdSN window, dispatch, memory bounds
//   scsi_command.cc       a task from its command PDU to its response
//   data_out.cc           immediate, unsolicited and solicited data
//   r2t.cc                what is asked for, and when
//   data_in.cc            Data-In, SCSI Response, residuals
//   task_management.cc    aborts and resets
//   session_services.cc   NOP, Text, Logout, Async Message, Reject
//
// Threads: one reactor. Life: owned by its Connection; close() first, destroyed when drained.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "iscsi/command_window.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/hearing.h"
#include "iscsi/login/login.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text_exchange.h"
#include "iscsi/outbox.h"
#include "iscsi/pdu_writer.h"
#include "iscsi/ping_tokens.h"
#include "iscsi/session_view.h"
#include "iscsi/shard.h"
#include "iscsi/task.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

// What a session asks of its connection.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  // A violation that leaves nothing to say: close now. `why` is one clause for the log.
  virtual void drop(std::string why) = 0;
  // All has been said: close once the outbox is empty.
  virtual void finish() = 0;
  // Bytes wait in the outbox.
  virtual void output_ready() = 0;
};

class Session {
 public:
  struct Start {
    Parameters parameters;
    std::shared_ptr<lun::Nexus> nexus;  // null: discovery session
    std::string local_address;
    uint16_t tsih = 0;
    uint16_t cid = 0;
    uint32_t cmd_sn = 0;   // next expected
    uint32_t stat_sn = 0;  // next to send
  };
  Session(Shard& shard, SessionHost& host, Outbox& out, Start start);
  ~Session();

  // The login response is out.
  void greet();
  void on_pdu(pdu::Pdu& pdu);
  void on_data_digest_error(const pdu::Pdu& pdu);
  // The outbox shrank or buffers came back: held commands may start.
  void resume();
  // Writes that were not admitted may be now (write_memory.h).
  void memory_came_back() { resume_budget_waiters(); }
  void tick(Nanos now, Nanos last_heard);
  // Async Message "logout request" (RFC 7143 §11.9.1 event 1).
  void ask_logout(uint16_t seconds);
  // Ends the session: aborts what runs; `drained` comes when the backend has let go of everything.
  // Nothing is answered after this.
  void close(bool lost, std::function<void()> drained);

  const Parameters& parameters() const { return parameters_; }
  uint16_t tsih() const { return tsih_; }
  const CommandWindow& window() const { return window_; }
  uint32_t stat_sn() const { return stat_sn_; }
  // It answered a ping before; DESIGN R6 exempts those that never did.
  bool answers_pings() const { return answers_pings_; }
  // See Hearing.
  Nanos heard_since() const { return hearing_.since(); }
  void describe(SessionView* view) const;

 private:
  // --- session.cc
  void deliver(pdu::Pdu& pdu, Nanos arrived);
  void stash(pdu::Pdu& pdu);
  void deliver_stashed();
  void forget_early(uint32_t cmd_sn);
  void announce_window();
  bool needs_hold(Task& task) const;
  void end_task(Task* task);
  void stamp(pdu::Bhs& header, bool takes_stat_sn);
  void keep_fresh();
  bool forwarding() const { return parameters_.forwarded_by != 0; }
  void all_drained();

  // --- scsi_command.cc
  void on_scsi_command(pdu::Pdu& pdu, Nanos arrived);
  bool accept_command(pdu::Pdu& pdu, Task* task);
  bool take_immediate_data(pdu::Pdu& pdu, Task* task);
  void start(Task* task);
  void refuse(Task* task, uint8_t asc, uint8_t ascq);
  void refuse_full(Task* task, const lun::Itl& itl);
  static void on_complete(lun::Command& command);
  void complete(Task* task);
  bool end_unanswered(Task* task);

  // --- data_out.cc
  void on_data_out(pdu::Pdu& pdu);
  void accept_unsolicited(pdu::Pdu& pdu, Task* task);
  void accept_solicited(pdu::Pdu& pdu, Task* task);
  void append_data(pdu::Pdu& pdu, Task* task, bool charged);
  void hand_over_data(Task* task);
  void fail_data(Task* task, uint8_t asc, uint8_t ascq, const pdu::Bhs& header);
  void discard_failed(Task* task, const pdu::Bhs& header);
  void charge(Task* task, uint32_t bytes);
  void hold_for_unit(Task* task, lun::Itl* itl, uint32_t bytes);
  void release_for_unit(Task* task);

  // --- r2t.cc
  void pump_data_out(Task* task);
  bool admit(Task* task);
  void let_in(Task* task, uint32_t bytes);
  bool has_room(Task& task) const;
  bool turn_of_another(const Task& task) const;
  void wait_for_budget(Task* task);
  void resume_budget_waiters();
  uint32_t next_burst(const Task& task) const;
  void wait_for_burst(Task* task);
  void stop_asking(Task* task);
  void request_bursts();
  void request_burst(Task* task);
  void came(Task* task, uint32_t bytes);
  void ask_others_later();

  // --- data_in.cc
  void respond(Task* task);
  void respond_for_forwarder(Task* task, uint8_t response);
  uint32_t send_data_in(Task* task, uint32_t bytes, uint8_t residual_flag, uint32_t residual);
  void send_response(Task* task, uint32_t pdus, uint8_t residual_flag, uint32_t residual);

  // --- task_management.cc
  void on_task_management(const pdu::Pdu& pdu);
  void abort_one(const pdu::Bhs& header);
  void abort_unknown(const pdu::Bhs& header);
  void answer_function(uint32_t itt, pdu::TaskResponse response);
  pdu::TaskResponse response_to_reset(bool at_owner) const;
  void abort_lun(const pdu::Bhs& header, pdu::TaskFunction function);
  void reset_target(const pdu::Bhs& header, bool cold);
  void drop_unstarted(uint64_t lun, bool every_lun, uint32_t before_cmd_sn);
  void unhold(Task* task);
  void send_task_response(uint32_t itt, pdu::TaskResponse response);

  // --- session_services.cc
  void on_nop_out(pdu::Pdu& pdu);
  void on_text(const pdu::Pdu& pdu);
  void on_logout(const pdu::Pdu& pdu);
  void send_logout_response(uint32_t itt, uint8_t response);
  void send_ping();
  void send_sign(uint32_t transfer_tag, ByteView data);
  void send_token();
  void reject(const pdu::Bhs& header, pdu::RejectReason reason);

  Shard& shard_;
  SessionHost& host_;
  Outbox& out_;
  PduWriter writer_;
  Parameters parameters_;
  std::shared_ptr<lun::Nexus> nexus_;
  TextExchange text_;
  CommandWindow window_;
  TaskPool pool_;
  const uint32_t immediate_limit_;  // immediate tasks at once
  TaskTable table_;
  const uint16_t tsih_;
  const uint16_t cid_;
  uint32_t stat_sn_;
  uint32_t next_transfer_tag_ = 1;
  bool logout_asked_ = false;
  bool closing_ = false;
  bool drained_ = false;
  std::vector<std::function<void()>> on_drained_;
  // What others may call back long after holds this weakly.
  std::shared_ptr<Session*> self_ = std::make_shared<Session*>(this);

  struct Stashed {
    uint32_t cmd_sn;
    std::unique_ptr<pdu::Pdu> pdu;  // null: aborted before it could run, only its number counts
    Nanos arrived = 0;
  };
  std::vector<Stashed> stashed_;  // arrived before a gap in CmdSN; at most the window
  size_t stashed_bytes_ = 0;      // their data
  Task* held_head_ = nullptr;     // accepted, wait for output memory
  Task* held_tail_ = nullptr;
  std::vector<Task*> budget_waiters_;  // wait to send their first R2T, oldest first
  bool waits_for_memory_ = false;      // the reactor's write_memory knows of them
  uint32_t admitted_ = 0;              // tasks whose R2Ts the budget covers
  uint64_t admissions_ = 0;            // so far
  size_t data_held_ = 0;               // data-out bytes charged to this session
  std::vector<Task*> burst_waiters_;   // admitted, may have another R2T; first admitted first
  uint32_t outstanding_ = 0;           // the sum of all tasks'
  bool asks_later_ = false;            // ask_others_later() has posted
  size_t reads_running_ = 0;           // data-in bytes that running commands may produce
  uint32_t immediate_tasks_ = 0;
  uint32_t functions_running_ = 0;  // task management not answered yet
  uint32_t told_max_;               // the MaxCmdSN sent last

  uint32_t ping_tag_ = pdu::kReservedTag;  // TTT of the ping in flight
  Nanos ping_sent_ = 0;
  bool answers_pings_ = false;  // it answered one before (R6: else it is exempt)
  Hearing hearing_;
  PingTokens tokens_;  // of a forwarding session
  Nanos token_sent_ = 0;

  Nanos started_;
  uint64_t commands_ = 0;
  uint64_t data_in_bytes_ = 0;
  uint64_t data_out_bytes_ = 0;
  uint64_t task_functions_ = 0;
  uint64_t rejects_ = 0;
};

}  // namespace sluice::iscsi
