"""A store on loopback that keeps what comes and answers as it is told. Answers are (status, headers, body), or a word: "cut"
ends the connection in the middle of the answer, "close" before it, "slow" says nothing until the store ends."""
import http.server
import threading


class Store:
    def __init__(self, *answers, usual=(200, {}, b""), host="127.0.0.1"):
        self.requests, self.answers, self.usual = [], list(answers), usual
        self.accepted = []              # those of the requests that were answered so
        self.ends = threading.Event()
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                store.requests.append((self.path, dict(self.headers), body))
                answer = store.answers.pop(0) if store.answers else store.usual
                self.close_connection = True
                if answer == "slow":
                    store.ends.wait(30)
                    return
                if answer == "close":
                    return
                if answer == "cut":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    return
                status, headers, text = answer
                if status < 300:
                    store.accepted.append((self.path, dict(self.headers), body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer((host, 0), Handler)
        self.url = "http://%s:%d" % (host, self.server.server_address[1])
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.ends.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
