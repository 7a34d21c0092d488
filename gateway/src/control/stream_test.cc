// The stream against a server in this process. A test scripts the server's answers.
#include "control/stream.h"

#include <gtest/gtest.h>

#include <latch>
#include <utility>

#include "control/fake_replica.h"

namespace sluice::control {
namespace {

class StreamTest : public testing::Test {
 protected:
  StreamOptions options(std::vector<std::string> endpoints) {
    StreamOptions options;
    options.endpoints = std::move(endpoints);
    options.insecure_loopback = true;
    options.backoff_least = kMillisecond;
    options.backoff_most = 10 * kMillisecond;
    return options;
  }
  StreamCallbacks callbacks() {
    StreamCallbacks callbacks;
    callbacks.hello = [] {
      wire::StreamHello hello;
      hello.set_gateway("g1");
      return hello;
    };
    callbacks.connected = [this](const wire::StreamWelcome& w) {
      events_.add("connected " + std::to_string(w.number()));
    };
    callbacks.received = [this](const wire::ConnectResponse& m) {
      events_.add("received " + std::to_string(m.message_case()));
    };
    callbacks.lost = [this](const std::string& why) { events_.add("lost " + why); };
    callbacks.heartbeat = [] {
      wire::StreamHeartbeat beat;
      beat.set_sessions(42);
      return beat;
    };
    return callbacks;
  }
  static Result<std::unique_ptr<Stream>> started(StreamOptions options, StreamCallbacks callbacks) {
    auto stream = Stream::create(std::move(options), std::move(callbacks));
    if (stream) (*stream)->begin();
    return stream;
  }
  Events events_;  // of the client
  Events server_;  // of the replica
};

TEST_F(StreamTest, ExchangesHelloAndWelcomeThenMessagesBothWaysAndHeartbeats) {
  Replica replica([this](const wire::StreamHello& hello, ServerStream& stream) {
    server_.add("hello " + hello.gateway());
    welcome(stream);
    wire::ConnectResponse job;
    job.mutable_job()->set_id("j");
    write(stream, job);
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
      if (message.has_ack()) server_.add("ack");
      if (message.has_heartbeat()) {
        server_.add("heartbeat " + std::to_string(message.heartbeat().sessions()));
      }
    }
    return grpc::Status::OK;
  });
  auto stream = started(options({replica.endpoint()}), callbacks());
  ASSERT_TRUE(stream) << stream.error();
  EXPECT_EQ(server_.next("hello"), "hello g1");
  EXPECT_EQ(events_.next(""), "connected 3");
  EXPECT_EQ(events_.next(""), "received 5");
  wire::ConnectRequest ack;
  ack.mutable_ack()->set_version(1);
  EXPECT_TRUE((*stream)->request(ack));
  EXPECT_EQ(server_.next("ack"), "ack");
  EXPECT_EQ(server_.next("heartbeat"), "heartbeat 42");
  EXPECT_EQ(server_.next("heartbeat"), "heartbeat 42");
  (*stream)->stop();
}

// All messages but the last are buffered; a heartbeat must not wait for a later message.
TEST_F(StreamTest, ManyBufferedMessagesAreDeliveredInOrderWithoutWaitingForAHeartbeat) {
  constexpr uint64_t kMessages = 100;
  Replica replica([this](const wire::StreamHello&, ServerStream& stream) {
    wire::ConnectResponse response;
    response.mutable_welcome()->set_heartbeat_interval_ms(10'000);
    write(stream, response);
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
      server_.add(message.has_ack() ? "ack " + std::to_string(message.ack().version()) : "beat");
    }
    return grpc::Status::OK;
  });
  std::latch over(1);
  bool began = false;
  StreamCallbacks with_one_beat = callbacks();
  with_one_beat.heartbeat = [&] {
    if (std::exchange(began, true)) over.wait();
    return wire::StreamHeartbeat();
  };
  auto stream = started(options({replica.endpoint()}), with_one_beat);
  ASSERT_TRUE(stream) << stream.error();
  EXPECT_EQ(server_.next(""), "beat");
  for (uint64_t i = 0; i < kMessages; ++i) {
    wire::ConnectRequest ack;
    ack.mutable_ack()->set_version(i);
    (*stream)->observe(ack);
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(server_.next(""), "ack " + std::to_string(i));
  }
  over.count_down();
}

TEST_F(StreamTest, AnotherEndpointIsTriedAfterARefusalOrAGoodbye) {
  Replica refusing([](const wire::StreamHello&, ServerStream&) {
    return grpc::Status(grpc::FAILED_PRECONDITION, "not this one");
  });
  Replica leaving([](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream);
    wire::ConnectResponse goodbye;
    goodbye.mutable_goodbye()->set_reason("upgrade");
    write(stream, goodbye);
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
    }
    return grpc::Status::OK;
  });
  Replica staying([](const wire::StreamHello&, ServerStream& stream) {
    welcome(stream, 9);
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
    }
    return grpc::Status::OK;
  });
  auto stream =
      started(options({refusing.endpoint(), leaving.endpoint(), staying.endpoint()}), callbacks());
  ASSERT_TRUE(stream) << stream.error();
  EXPECT_EQ(events_.next("connected 9"), "connected 9");
  (*stream)->reconnect("test");  // past the replica that refuses, to the one that ends
  EXPECT_EQ(events_.next("lost test"), "lost test");
  EXPECT_EQ(events_.next("lost"), "lost the replica stops: upgrade");
  EXPECT_EQ(events_.next("connected 9"), "connected 9");
}

TEST_F(StreamTest, WithoutAStreamARequestIsReportedAsNotSent) {
  auto stream = started(options({"127.0.0.1:1"}), callbacks());
  ASSERT_TRUE(stream) << stream.error();
  EXPECT_FALSE((*stream)->request({}));
  EXPECT_FALSE((*stream)->connected());
}

TEST_F(StreamTest, AReplicaThatDoesNotAnswerTheHelloIsDisconnected) {
  Replica dumb([this](const wire::StreamHello&, ServerStream& stream) {
    server_.add("hello");
    wire::ConnectRequest message;
    while (stream.Read(&message)) {
    }
    return grpc::Status::OK;
  });
  StreamOptions impatient = options({dumb.endpoint()});
  impatient.opening = 20 * kMillisecond;
  auto stream = started(impatient, callbacks());
  ASSERT_TRUE(stream);
  EXPECT_EQ(server_.next("hello"), "hello");
  EXPECT_EQ(server_.next("hello"), "hello") << "it went away and came again";
}

TEST_F(StreamTest, PlainTextIsAllowedOnLoopbackOnly) {
  EXPECT_FALSE(started(options({"192.0.2.1:7460"}), callbacks()));
  EXPECT_FALSE(started(options({}), callbacks()));
}

TEST_F(StreamTest, WithUnreadableTlsFilesTheStreamStartsAndStaysDisconnected) {
  StreamOptions tls = options({"127.0.0.1:1"});
  tls.insecure_loopback = false;
  tls.tls = {"/nonexistent/ca", "/nonexistent/cert", "/nonexistent/key"};
  auto stream = started(tls, callbacks());
  ASSERT_TRUE(stream);
  EXPECT_FALSE((*stream)->connected());
}

}  // namespace
}  // namespace sluice::control
