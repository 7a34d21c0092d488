#include "iscsi/connection.h"

#include <utility>

#include "base/log.h"
#include "base/safety_mutation.h"

namespace sluice::iscsi {
namespace {

using Event = pdu::Framer::Event;

constexpr unsigned kTsih = 14;  // of Login PDUs (RFC 7143 §11.12)
constexpr unsigned kCid = 20;

}  // namespace

Connection::Connection(Shard& shard, Transport& transport, uint64_t id, Ends ends)
    : shard_(shard),
      transport_(transport),
      id_(id),
      ends_(std::move(ends)),
      writer_(out_),
      opened_(shard.now),
      last_heard_(shard.now) {
  Login::Setup setup;
  setup.exports = shard.gateway->exports;
  setup.sessions = shard.gateway->directory;
  setup.offer = shard.gateway->settings.offer;
  setup.tpgt = ends_.tpgt;
  setup.local_address = ends_.local_address;
  setup.random = shard.gateway->random;
  setup.may_try = [this](std::string_view initiator) { return may_try(initiator); };
  if (ends_.forwarding) {
    setup.forwarding = &shard.gateway->forwarding;
    // The data transfer mode that forwarders support (forwarding_wire.h); another peer is not a
    // forwarder.
    setup.offer.initial_r2t = false;
    setup.offer.immediate_data = true;
  }
  login_ = std::make_unique<Login>(std::move(setup));
  shard_.connections[id_] = this;
  shard_.gateway->connections.fetch_add(1, std::memory_order_relaxed);
  shard_.counters->connections_opened.add();
}

Connection::~Connection() {
  shard_.connections.erase(id_);
  shard_.gateway->connections.fetch_sub(1, std::memory_order_relaxed);
  shard_.counters->connections_closed.add();
}

void Connection::count_login(size_t slot) {
  if (!std::exchange(login_counted_, true)) shard_.counters->logins[slot].add();
}

void Connection::receive(Slice bytes) {
  received_bytes_ += bytes.size;
  shard_.counters->received_bytes.add(bytes.size);
  // DESIGN R6: the host may have repeated its commands on another path.
  if (session_ && session_->liveness().answers_pings() &&
      shard_.now - session_->liveness().confirmed_until() >= limits::kDiscardSilence &&
      !mutation_disables(Guard::kAge)) {
    shard_.counters->stale_discards.add(bytes.size);
    return drop("silent for too long, what it says now may be stale");
  }
  last_heard_ = shard_.now;
  while (!transport_closed_ && (state_ == State::kLogin || state_ == State::kFullFeature)) {
    const Event event = framer_.next(bytes);
    if (event == Event::kNeedMore) break;
    on_event(event);
    // Releases unused data now: an idle session holds no receive buffer.
    framer_.pdu().data.clear();
  }
  // Commands respect kMaxOutputBytes. Only an initiator that requests answers (NOPs, rejects)
  // faster than it reads them exceeds this limit.
  if (out_.bytes() > limits::kMaxTransferBytes + 2 * limits::kMaxOutputBytes) {
    drop("answers are not read");
  }
  // RFC 7143 §6.3: an initiator sends nothing between its last login request and the answer.
  if (state_ == State::kClaiming && bytes.size != 0) drop("data before the login response");
}

void Connection::on_event(Event event) {
  shard_.counters->received_pdus.add();
  if (event == Event::kPdu && session_) [[likely]] {
    return session_->on_pdu(framer_.pdu());
  }
  switch (event) {
    case Event::kPdu:
      return on_login_pdu();
    case Event::kDataDigestError:
      shard_.counters->data_digest_failures.add();
      return session_->on_data_digest_error(framer_.pdu());
    case Event::kHeaderDigestError:
      shard_.counters->header_digest_failures.add();
      return drop("header digest error");
    case Event::kSegmentTooLong:
      return drop("data segment longer than MaxRecvDataSegmentLength");
    case Event::kAhsTooLong:
      return drop("additional header segment too long");
    case Event::kNeedMore:
      break;
  }
}

void Connection::on_login_pdu() {
  transport_.progressed();
  const pdu::Bhs& h = framer_.pdu().header;
  if (h.opcode() != pdu::Opcode::kLoginRequest) {
    answer_ = {};
    answer_.header.set_itt(h.itt());
    Login::fail(&answer_, LoginStatus::kInvalidDuringLogin);
    login_cmd_sn_ = h.cmd_sn();
    return login_failed(LoginStatus::kInvalidDuringLogin, "not a login request");
  }
  std::string text;
  text.reserve(framer_.pdu().data_size);
  for (const Slice& s : framer_.pdu().data) text.append(as_text({s.data, s.size}));
  answer_ = {};
  login_cmd_sn_ = h.cmd_sn();
  cid_ = h.u16(kCid);
  switch (login_->on_request(h, as_bytes(text), &answer_)) {
    case Login::Outcome::kContinue:
      return send_login_answer();
    case Login::Outcome::kFailed:
      return login_failed(login_->status(), login_->reason());
    case Login::Outcome::kSucceeded:
      return login_succeeded();
    case Login::Outcome::kDrop:
      return drop("login dropped: " + login_->reason());
  }
}

void Connection::send_login_answer() {
  pdu::Bhs& h = writer_.start(pdu::Opcode::kLoginResponse);
  h = answer_.header;
  h.set_opcode(pdu::Opcode::kLoginResponse);
  h.set_stat_sn(login_stat_sn_++);
  h.set_window(login_cmd_sn_, login_cmd_sn_);
  if (session_) h.set_window(session_->window().expected(), session_->window().max());
  writer_.copy(as_bytes(answer_.text));
  writer_.finish();
  transport_.schedule_flush();
}

void Connection::login_failed(LoginStatus status, const std::string& reason) {
  count_login(login_slot(status));
  log::info("login refused", {{"peer", ends_.peer_address},
                              {"portal", ends_.local_address},
                              {"status", log::Hex{static_cast<uint16_t>(status)}},
                              {"reason", reason}});
  const Nanos held = hold_refusal(status);
  if (held > 0) {
    shard_.counters->logins_delayed.add();
    state_ = State::kRefusing;
    answer_at_ = shard_.now + held;
    return;
  }
  send_login_answer();
  finish();
}

void Connection::refuse_login(LoginStatus status, const char* reason) {
  Login::fail(&answer_, status);
  login_failed(status, reason);
}

SessionKey Connection::key() const {
  const Parameters& p = login_->parameters();
  return {p.initiator_name, p.isid, p.target_name, p.tpgt, p.forwarded_by};
}

void Connection::login_succeeded() {
  // Reported now and not when the session opens: a claim may wait long for a backend, and must not
  // block other logins.
  const Parameters& who = login_->parameters();
  if (!who.discovery || proven(who)) transport_.authenticated();
  const uint16_t tsih = login_->requested_tsih();
  origin_ = login_->origin();
  if (who.discovery) {
    if (tsih != 0) return refuse_login(LoginStatus::kSessionDoesNotExist, "TSIH of no session");
    return open_session(shard_.gateway->directory->take_tsih());
  }
  key_ = key();
  const NexusIncarnation nexus{origin_.incarnation, origin_.nexus};
  if (ends_.forwarding && shard_.gateway->directory->outdated(key_, nexus)) {
    return refuse_login(LoginStatus::kSessionDoesNotExist, "of a nexus that is no more");
  }
  // TSIH != 0: a connection reinstatement, which with ERL 0 and one connection replaces the
  // session's only connection and so ends all its tasks (RFC 7143 §6.3.4).
  if (tsih != 0 && !shard_.gateway->directory->matches(key_, tsih)) {
    return refuse_login(LoginStatus::kSessionDoesNotExist, "TSIH of no session");
  }
  // Another CID would add a connection, and MaxConnections is 1.
  if (tsih != 0 && shard_.gateway->directory->cid(key_) != cid_) {
    return refuse_login(LoginStatus::kTooManyConnections, "a second connection of a session");
  }
  state_ = State::kClaiming;
  claimed_ = true;
  shard_.gateway->directory->claim(key_, {shard_.context.reactor, id_}, tsih, cid_, nexus);
}

void Connection::granted(uint16_t tsih) {
  if (state_ != State::kClaiming) {
    // The connection ended while it waited: releases the nexus.
    return drained();
  }
  open_session(tsih);
}

void Connection::open_session(uint16_t tsih) {
  tsih_ = tsih;
  Session::Start start;
  start.parameters = login_->parameters();
  if (!start.parameters.discovery) {
    // A reload may have changed the access since the lookup; a later one finds this session in the
    // directory.
    target_ = login_->target();
    lun::HostAccess access;
    const Barred barrier = barred(start.parameters, &access);
    if (barrier.status != LoginStatus::kSuccess) {
      return refuse_login(barrier.status, barrier.why);
    }
    start.parameters.read_only = access.read_only;
  }
  start.local_address = ends_.local_address;
  start.tsih = tsih;
  start.cid = cid_;
  start.cmd_sn = login_->first_cmd_sn();
  start.stat_sn = login_stat_sn_ + 1;  // after the answer that is about to be sent
  if (!start.parameters.discovery) {
    start.nexus = open_nexus(start.parameters);
  }
  session_ = std::make_unique<Session>(shard_, *this, out_, std::move(start));
  state_ = State::kFullFeature;
  answer_.header.put16(kTsih, tsih);
  send_login_answer();
  const Parameters& p = session_->parameters();
  framer_.set_max_segment(p.max_recv_data_segment_length);
  framer_.set_max_ahs(limits::kMaxAhsBytes);
  framer_.set_digests(p.header_digest, p.data_digest);
  session_->greet();
  (p.discovery ? shard_.counters->discovery_opened : shard_.counters->sessions_opened).add();
  count_login(login_slot(LoginStatus::kSuccess));
  note_success(p);
  log::info("session opened", {{"session", tsih},
                               {"initiator", p.initiator_name},
                               {"target", p.discovery ? "(discovery)" : p.target_name},
                               {"peer", ends_.peer_address},
                               {"portal", ends_.local_address},
                               {"auth", p.auth_method}});
  login_.reset();
}

// A forwarded nexus belongs to the gateway to which its host is connected, so it never equals one
// of this gateway's own (DESIGN R9).
std::shared_ptr<lun::Nexus> Connection::open_nexus(const Parameters& p) const {
  lun::NexusId id{p.initiator_name, p.isid, ends_.tpgt,
                  login_->target()->relative_port_of(ends_.tpgt).value_or(ends_.relative_port)};
  if (ends_.forwarding) {
    id.target_portal_group = origin_.tpgt;
    id.relative_target_port = origin_.relative_port;
  }
  return lun::Nexus::open(login_->target(), std::move(id), shard_.context, p.read_only,
                          ends_.forwarding ? std::optional(p.host_age) : std::nullopt);
}

void Connection::drop(std::string why) {
  if (transport_closed_) return;
  if (session_) {
    shard_.counters->protocol_errors.add();
  } else {
    count_login(kLoginDropped);
  }
  log::warning("connection dropped",
               {{"session", tsih_}, {"peer", ends_.peer_address}, {"reason", why}});
  transport_closed_ = true;
  transport_.close(true);
  begin_end(true);
}

void Connection::finish() {
  if (transport_closed_) return;
  transport_closed_ = true;
  transport_.close(false);
  begin_end(false);
}

void Connection::on_closed() {
  transport_closed_ = true;
  // An incomplete PDU will never complete: its receive buffers are released now, not when the last
  // command has left the backend.
  framer_.pdu().data.clear();
  begin_end(true);
}

void Connection::end_session() {
  if (state_ == State::kEnding || state_ == State::kOver) return;
  if (session_) shard_.counters->sessions_reinstated.add();
  transport_closed_ = true;
  transport_.close(true);
  begin_end(true);
}

void Connection::begin_end(bool lost) {
  if (state_ == State::kEnding || state_ == State::kOver) return;
  const State was = std::exchange(state_, State::kEnding);
  if (session_) return session_->close(lost, [this] { drained(); });
  if (was == State::kClaiming) {
    // The claim is either still waiting (release() drops it) or was just granted (release() frees
    // it).
    shard_.gateway->directory->release(key_, {shard_.context.reactor, id_});
    claimed_ = false;
  }
  drained();
}

void Connection::drained() {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  if (session_) {
    const bool discovery = session_->parameters().discovery;
    note_success(session_->parameters());
    (discovery ? shard_.counters->discovery_closed : shard_.counters->sessions_closed).add();
    log::info("session over",
              {{"session", tsih_}, {"initiator", session_->parameters().initiator_name}});
    if (discovery) shard_.gateway->directory->give_back_tsih(tsih_);
  }
  if (std::exchange(claimed_, false)) {
    shard_.gateway->directory->release(key_, {shard_.context.reactor, id_});
  }
  transport_.over();
}

void Connection::on_sent(size_t bytes) {
  sent_bytes_ += bytes;
  shard_.counters->sent_bytes.add(bytes);
  if (session_) session_->resume();
}

void Connection::resume() {
  if (session_) session_->resume();
}

void Connection::tick() {
  const Nanos now = shard_.now;
  if (transport_closed_) return;
  if (leave_by_ != 0 && now >= leave_by_) return drop("asked to leave, it did not log out");
  // Discovery sessions are not in the directory, which notifies all others of a change of peers.
  if (ends_.forwarding && session_ && session_->parameters().discovery && !from_peer()) {
    return drop("the gateway is no longer a peer");
  }
  if (session_) {
    session_->tick(last_heard_);
    if (!transport_closed_) session_->resume();
    return;
  }
  if (state_ == State::kRefusing) {
    if (now < answer_at_) return;
    send_login_answer();
    return finish();
  }
  if (now - opened_ >= transport_.login_timeout(shard_.gateway->settings.login_timeout)) {
    count_login(kLoginTimedOut);
    drop("login not finished in time");
  }
}

void Connection::ask_logout(uint16_t seconds) {
  if (session_ && !session_->parameters().discovery) return session_->ask_logout(seconds);
  end_session();
}

void Connection::describe(SessionView* view) const {
  session_->describe(view);
  view->initiator_address = ends_.peer_address;
  view->target_address = ends_.local_address;
  view->reactor = shard_.context.reactor;
  view->silence = shard_.now - last_heard_;
  view->received_bytes = received_bytes_;
  view->sent_bytes = sent_bytes_;
}

}  // namespace sluice::iscsi
