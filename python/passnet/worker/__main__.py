import signal

from passnet.worker.serve import main

# Ctrl-C in a terminal reaches the whole group. The program that started this process lets the graph under way end first;
# where it ends itself, its pipe closes.
signal.signal(signal.SIGINT, signal.SIG_IGN)
raise SystemExit(main())
