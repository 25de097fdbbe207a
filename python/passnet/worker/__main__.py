from passnet.worker.serve import main

raise SystemExit(main())
