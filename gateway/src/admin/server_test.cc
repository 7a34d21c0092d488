#include "admin/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "admin/client.h"
#include "admin/socket.h"
#include "base/limits.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

class AdminSocket : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/sluice-admin-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ + "/made/gateway.sock";
  }
  void TearDown() override {
    server_.reset();
    unlink(path_.c_str());
    rmdir((directory_ + "/made").c_str());
    rmdir(directory_.c_str());
  }

  void serve() {
    Result<std::unique_ptr<Server>> server = Server::start(path_, handlers_);
    ASSERT_TRUE(server.ok()) << server.error();
    server_ = std::move(server).value();
  }

  // Sends as it is, gives what comes until a line ends; empty when the server hangs up.
  static std::string exchange(int fd, const std::string& text) {
    std::string buffer;
    std::string line;
    if (!write_all(fd, -1, soon(), text)) return {};
    return read_line(fd, -1, soon(), size_t{1} << 20, &buffer, &line) ? line : "";
  }

  std::string directory_;
  std::string path_;
  Handlers handlers_ = {{"sessions", [] { return R"([{"tsih":1}])"; }},
                        {"big", [] { return "\"" + std::string(3 << 20, 'x') + "\""; }}};
  std::unique_ptr<Server> server_;
};

TEST_F(AdminSocket, AnswersARequest) {
  serve();
  const Result<std::string> result = ask(path_, "sessions");
  ASSERT_TRUE(result.ok()) << result.error();
  EXPECT_EQ(result.value(), R"([{"tsih":1}])");
}

TEST_F(AdminSocket, AnswersLargerThanASocketBufferArriveCompletely) {
  serve();
  const Result<std::string> result = ask(path_, "big");
  ASSERT_TRUE(result.ok()) << result.error();
  EXPECT_EQ(result.value().size(), (size_t{3} << 20) + 2);
}

TEST_F(AdminSocket, IsAccessibleToItsOwnerOnly) {
  const mode_t before = umask(0);
  serve();
  umask(before);
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((directory_ + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(AdminSocket, OneConnectionServesALimitedNumberOfRequests) {
  serve();
  const Result<FileDescriptor> client = connect_to(path_);
  ASSERT_TRUE(client.ok());
  for (unsigned i = 0; i < limits::kMaxAdminRequests; ++i) {
    ASSERT_EQ(exchange(client.value().get(), "{\"request\": \"sessions\"}\n"),
              R"({"ok":true,"result":[{"tsih":1}]})");
  }
  EXPECT_EQ(exchange(client.value().get(), "{\"request\": \"sessions\"}\n"), "");
}

TEST_F(AdminSocket, AnOverlongLineEndsItsConnection) {
  serve();
  const Result<FileDescriptor> client = connect_to(path_);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(exchange(client.value().get(), std::string(limits::kMaxAdminRequest + 5000, 'x')), "");
  EXPECT_TRUE(ask(path_, "sessions").ok()) << "and the next client is served";
}

TEST_F(AdminSocket, ClientsThatDisconnectBeforeTheirAnswerDoNotAffectOthers) {
  serve();
  for (int i = 0; i < 50; ++i) {
    const Result<FileDescriptor> client = connect_to(path_);
    ASSERT_TRUE(client.ok());
    EXPECT_TRUE(write_all(client.value().get(), -1, soon(), "{\"request\": \"big\"}\n"));
  }
  EXPECT_TRUE(ask(path_, "sessions").ok());
}

TEST_F(AdminSocket, StopsWithoutWaitingForAConnectedClientAndRemovesItsFile) {
  serve();
  const Result<FileDescriptor> client = connect_to(path_);
  ASSERT_TRUE(client.ok());
  ASSERT_NE(exchange(client.value().get(), "{}\n"), "");
  const auto begin = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::nanoseconds(limits::kAdminPatience))
      << "it waited for the client";
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(AdminSocket, AStaleSocketIsReplacedAndALiveOneIsNot) {
  {
    const Result<FileDescriptor> left_behind = listen_at(path_);
    ASSERT_TRUE(left_behind.ok());
  }
  serve();
  const Result<std::unique_ptr<Server>> second = Server::start(path_, handlers_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error(), HasSubstr("another gateway serves it"));
  EXPECT_TRUE(ask(path_, "sessions").ok());
}

TEST_F(AdminSocket, AFileThatIsNotASocketIsNotReplaced) {
  ASSERT_EQ(mkdir((directory_ + "/made").c_str(), 0700), 0);
  std::ofstream(path_) << "precious";
  const Result<std::unique_ptr<Server>> server = Server::start(path_, handlers_);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error(), HasSubstr("something else is there"));
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

TEST_F(AdminSocket, AnOverlongPathIsRefused) {
  const Result<std::unique_ptr<Server>> server =
      Server::start("/tmp/" + std::string(120, 'x'), handlers_);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error(), HasSubstr("a socket's path has 1 to 107 bytes"));
}

TEST_F(AdminSocket, TheClientReportsThatNoGatewayServesTheSocket) {
  const Result<std::string> result = ask(path_, "sessions");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(),
            "no gateway serves " + path_ + "; is it running? --socket names another");
}

TEST(AdminAnswer, EveryInvalidRequestLineIsAnsweredWithAnError) {
  const Handlers handlers = {{"sessions", [] { return "[]"; }}};
  for (const std::string line :
       {"", "{", "[]", "null", "42", "\"sessions\"", "{}", "{\"request\": 1}",
        "{\"request\": null}", "{\"request\": \"drop\"}", "{\"request\": \"\xff\xfe\"}", "\x80\x81",
        "{\"request\": \"\\u0000\"}"}) {
    const nlohmann::json reply = nlohmann::json::parse(answer(handlers, line), nullptr, false);
    ASSERT_TRUE(reply.is_object()) << line;
    EXPECT_EQ(reply["ok"], false) << line;
    EXPECT_TRUE(reply["error"].is_string()) << line;
  }
  EXPECT_EQ(answer(handlers, std::string(4000, '[')), answer(handlers, "["));
  EXPECT_EQ(answer(handlers, R"({"request":"sessions"})"), R"({"ok":true,"result":[]})");
}

}  // namespace
}  // namespace sluice::admin
